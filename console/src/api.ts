// The bridge, from the page's side. The key lives in one private field of one object, for as long as the page does.
import type { Answers, CallName, Change } from "./types.ts";

export interface Violation { field: string; description: string }

/** What was answered instead: the server's reason, or one of the bridge's. */
export class CallFailed extends Error {
  constructor(readonly reason: string, message: string, readonly status: number, readonly violations: Violation[] = []) {
    super(message);
  }
}

export class Api {
  #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** Makes a read call. Throws CallFailed, or AbortError when `signal` says so. */
  async call<N extends Exclude<CallName, Change>>(name: N, body: object, signal?: AbortSignal): Promise<Answers[N]> {
    return this.#send(name, body, {}, signal);
  }

  /** Makes a call that changes something; whoever asks for it has confirmed it. */
  async change<N extends Change>(name: N, body: object): Promise<Answers[N]> {
    return this.#send(name, body, { "X-Palimpsest-Confirmed": name });
  }

  async #send<N extends CallName>(name: N, body: object, headers: Record<string, string>, signal?: AbortSignal): Promise<Answers[N]> {
    let response: Response;
    try {
      response = await fetch(`/api/${name}`, {
        method: "POST",
        headers: { ...headers, Authorization: `Bearer ${this.#key}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
        signal: signal ?? null,
        credentials: "omit",
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new CallFailed("CONSOLE_UNREACHABLE", String(error), 0);
    }
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer as Answers[N];
    const told = answer.error ?? {};
    throw new CallFailed(told.reason ?? "INTERNAL", told.message ?? response.statusText, response.status, told.violations);
  }
}

/** Whether this console was started with `--allow-changes`. */
export async function changesAllowed(): Promise<boolean> {
  const response = await fetch("/about", { credentials: "omit", cache: "no-store" });
  return response.ok && (await response.json()).changesAllowed === true;
}
