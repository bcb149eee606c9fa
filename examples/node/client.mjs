// Palimpsest for Node: stubs made from protos/ as the program starts, the key on every call, errors with reasons.
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

// By the name of a client's field: the service and the file that has it.
const SERVICES = {
  graphs: ["GraphService", "graph"],
  memory: ["MemoryService", "memory"],
  recall: ["RecallService", "recall"],
  jobs: ["JobService", "jobs"],
  credits: ["CreditService", "credits"],
  privacy: ["PrivacyService", "privacy"],
};
const DETAILS = "grpc-status-details-bin";
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const FINAL = new Set(["JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIAL", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"]);

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const protos = loader.loadSync(
  [
    ...Object.values(SERVICES).map(([, file]) => `palimpsest/v1/${file}.proto`),
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
  ],
  // Fields are camelCase, int64 are strings (money and revisions do not fit a number for sure), enums their names.
  { includeDirs: [here("../../protos"), here("protos")], longs: String, enums: String, defaults: true, oneofs: true },
);
const api = grpc.loadPackageDefinition(protos).palimpsest.v1;

/** A call that the server refused or failed. `reason` says why, such as GRAPH_NOT_FOUND; else it is gRPC's code. */
export class Refused extends Error {
  constructor(error) {
    super(error.details || error.message);
    this.name = "Refused";
    this.code = grpc.status[error.code];
    this.reason = this.code;
    this.metadata = {};
    this.violations = [];
    this.retryAfterSeconds = null;
    const [raw] = error.metadata?.get(DETAILS) ?? [];
    for (const { type_url: type, value } of raw ? detailsOf(raw) : []) this.#read(type.split("/").pop(), value);
  }

  #read(type, value) {
    if (!(type in protos)) return;
    const detail = protos[type].deserialize(value);
    if (type === "google.rpc.ErrorInfo" && detail.domain === "palimpsest") {
      this.reason = detail.reason;
      this.metadata = detail.metadata;
    } else if (type === "google.rpc.RetryInfo") {
      this.retryAfterSeconds = Number(detail.retryDelay.seconds) + detail.retryDelay.nanos / 1e9;
    } else if (type === "google.rpc.BadRequest") {
      this.violations = detail.fieldViolations;
    }
  }
}

// An Any is plain here: its type by name, its bytes.
const detailsOf = (raw) => protos["google.rpc.Status"].deserialize(raw).details;

/** One channel to a server, for host:port or, over TLS, https://host:port. Close it at the end. */
export class Client {
  constructor(target, key) {
    const tls = target.startsWith("https://");
    const credentials = tls ? grpc.credentials.createSsl() : grpc.credentials.createInsecure();
    const options = {
      "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
      "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    };
    this.key = key;
    for (const [name, [service]] of Object.entries(SERVICES)) {
      this[name] = new api[service](target.replace("https://", ""), credentials, options);
      options.channelOverride = this.graphs.getChannel(); // all stubs share the channel of the first
    }
  }

  #metadata() {
    const metadata = new grpc.Metadata();
    metadata.set("authorization", `Bearer ${this.key}`);
    return metadata;
  }

  /** Calls once: `client.call("memory", "AddEpisode", {...})`. A call that changes something needs a requestId. */
  call(service, method, request, seconds = 30) {
    const stub = this[service];
    return new Promise((resolve, reject) =>
      stub[method](request, this.#metadata(), { deadline: Date.now() + seconds * 1000 }, (error, answer) =>
        error ? reject(new Refused(error)) : resolve(answer),
      ),
    );
  }

  /** The job now and after each change until it has ended; goes on where a broken stream stopped. */
  async *watch(jobId, tries = 5) {
    let [cursor, left] = ["", tries];
    for (;;) {
      const stream = this.jobs.WatchJob({ jobId, cursor }, this.#metadata());
      try {
        for await (const change of stream) {
          [cursor, left] = [change.cursor, tries];
          yield change.job;
          if (FINAL.has(change.job.state)) return;
        }
      } catch (error) {
        const refused = new Refused(error);
        left -= 1;
        if (refused.code !== "UNAVAILABLE" || left === 0) throw refused;
        await new Promise((wake) => setTimeout(wake, 1000 * (refused.retryAfterSeconds ?? 1)));
      } finally {
        stream.cancel();
      }
    }
  }

  close() {
    this.graphs.close();
  }
}

/** A fresh name for a call: repeating the call under it changes nothing more. */
export const newRequestId = () => randomUUID();

/** A Date as the API takes it. */
export const timestamp = (date) => ({ seconds: Math.floor(date.getTime() / 1000), nanos: 0 });

/** A time of the API as far as it is known: 2025, 2025-05, 2025-05-31. */
export function shown(time, precision) {
  const day = new Date(Number(time.seconds) * 1000).toISOString().slice(0, 10);
  return { PRECISION_YEAR: day.slice(0, 4), PRECISION_MONTH: day.slice(0, 7) }[precision] ?? day;
}
