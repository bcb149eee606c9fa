// A story told to Palimpsest from Node: two things are said, one strikes the other through.
//
//     PALIMPSEST_KEY=pk_… node example.mjs [HOST:PORT] [GRAPH]
import { Client, Refused, newRequestId, shown, timestamp } from "./client.mjs";

const [target = process.env.PALIMPSEST_TARGET || "127.0.0.1:7233", graphId = "from-node"] = process.argv.slice(2);
const client = new Client(target, process.env.PALIMPSEST_KEY ?? "");

async function say(text, day) {
  const episode = {
    graphId,
    requestId: newRequestId(),
    text,
    kind: "EPISODE_KIND_CONVERSATION",
    referenceTime: timestamp(new Date(day)),
  };
  const { job } = await client.call("memory", "AddEpisode", episode);
  const again = await client.call("memory", "AddEpisode", episode);
  console.log(`said again under its request id: ${again.job.jobId === job.jobId ? "the same job" : "another job"}`);
  let last = job;
  for await (const change of client.watch(job.jobId)) last = change;
  console.log(`${last.state}, revision ${last.revision}, ${last.credits.spentMicros} micro-credits`);
  return last.revision;
}

async function main() {
  const created = await client.call("graphs", "CreateGraph", { graphId, settings: { userName: "Mara" } });
  console.log(`graph of ${created.graph.settings.userName}, ${created.created ? "new" : "there already"}`);

  await say("I live in Graz.", "2024-03-01");
  const minRevision = await say("I moved to Linz in May 2025.", "2025-06-02");

  const question = { graphIds: [graphId], query: "Where do I live?", minRevision };
  const recalled = await client.call("recall", "Recall", question);
  console.log(recalled.context);

  const asked = { graphId, subject: { name: "Mara" }, predicate: { name: "lives_in" }, minRevision };
  for (const { object, span, struck } of (await client.call("memory", "GetTimeline", asked)).entries) {
    const since = shown(span.validAt, span.validAtPrecision);
    const until = span.invalidAt ? ` until ${shown(span.invalidAt, span.invalidAtPrecision)}` : "";
    console.log(`${struck ? "✗" : "●"} ${object.entity.name} since ${since}${until}`);
  }

  const absent = await refusal(client.call("graphs", "GetGraph", { graphId: `${graphId}-of-nobody` }));
  console.log(`refused: ${absent.code} ${absent.reason}: ${absent.message}`);
  const wrong = await refusal(client.call("memory", "AddEpisode", { graphId, requestId: newRequestId(), text: " " }));
  const fields = wrong.violations.map((each) => each.field).sort();
  console.log(`refused: ${wrong.code} ${wrong.reason}: ${fields.join(", ")}`);
}

async function refusal(call) {
  try {
    await call;
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.error(`${error.reason}: ${error.message}`);
  process.exitCode = 1;
} finally {
  client.close();
}
