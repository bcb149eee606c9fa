// Session: what every page works with, and the hooks by which it asks.
import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { type Api, CallFailed } from "./api.ts";
import type { Answers, CallName, Change, Statement } from "./types.ts";

/** What lies open above the page. */
export type Panel =
  | { kind: "statement"; id: string }
  | { kind: "episode"; id: string; quote?: string | undefined }
  | { kind: "change"; change: Change; of: { id: string; name: string }; statement?: Statement };

export interface Session {
  api: Api;
  graph: string;
  changes: boolean;
  /** Grows when what was read is to be read again. */
  turn: number;
  again(): void;
  open(panel: Panel): void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("there is no session here");
  return session;
}

export interface Asked<A> { answer: A | undefined; failure: CallFailed | undefined; asking: boolean }

type Read = Exclude<CallName, Change>;

function asFailure(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed("INTERNAL", String(error), 0);
}

/** Asks when `body` changes; null asks nothing. The answer before stays until the next one is here. */
export function useAsked<N extends Read>(name: N, body: object | null): Asked<Answers[N]> {
  const { api, turn } = useSession();
  const sent = body && JSON.stringify(body);
  const [state, setState] = useState<Asked<Answers[N]>>({ answer: undefined, failure: undefined, asking: sent !== null });
  useEffect(() => {
    if (sent === null) {
      setState({ answer: undefined, failure: undefined, asking: false });
      return;
    }
    const abort = new AbortController();
    setState((before) => ({ ...before, asking: true }));
    api.call(name, JSON.parse(sent), abort.signal).then(
      (answer) => abort.signal.aborted || setState({ answer, failure: undefined, asking: false }),
      (error) => abort.signal.aborted || setState({ answer: undefined, failure: asFailure(error), asking: false }),
    );
    return () => abort.abort();
  }, [api, turn, name, sent]);
  return state;
}

/** Asks page after page, at most `most` items; what is there is shown while the rest comes. */
export function useAll<N extends Read, T>(name: N, body: object | null, itemsOf: (answer: Answers[N]) => T[] | undefined, most: number): Asked<T[]> & { more: boolean } {
  const { api, turn } = useSession();
  const sent = body && JSON.stringify(body);
  const [state, setState] = useState<Asked<T[]> & { more: boolean }>({ answer: undefined, failure: undefined, asking: sent !== null, more: false });
  useEffect(() => {
    const abort = new AbortController();
    const ask = async () => {
      let items: T[] = [];
      let token = "";
      do {
        const answer = await api.call(name, { ...JSON.parse(sent!), pageSize: 1000, pageToken: token }, abort.signal);
        items = items.concat(itemsOf(answer) ?? []);
        token = (answer as { nextPageToken?: string }).nextPageToken ?? "";
        const left = token !== "";
        setState({ answer: items, failure: undefined, asking: left && items.length < most, more: left });
      } while (token !== "" && items.length < most);
    };
    if (sent === null) setState({ answer: undefined, failure: undefined, asking: false, more: false });
    else {
      setState((before) => ({ ...before, asking: true }));
      ask().catch((error) => abort.signal.aborted || setState({ answer: undefined, failure: asFailure(error), asking: false, more: false }));
    }
    return () => abort.abort();
  }, [api, turn, name, sent, most]);
  return state;
}

/** How many of `total` to show: a screenful at once, the rest whenever the browser has nothing better to do. */
export function useGrowing(total: number, first: number, step: number): number {
  const [shown, setShown] = useState(first);
  useEffect(() => {
    if (shown >= total) return;
    const idle = requestIdleCallback(() => setShown((before) => before + step), { timeout: 200 });
    return () => cancelIdleCallback(idle);
  }, [shown, total, step]);
  return Math.min(shown, total);
}

/** The value that `value` was once it has stayed for a moment. */
export function useSettled<T>(value: T, millis: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), millis);
    return () => clearTimeout(timer);
  }, [value, millis]);
  return settled;
}

/** The same now for one look at what was read. */
export function useNow(): number {
  const { turn } = useSession();
  return useMemo(() => Date.now(), [turn]);
}
