// Where the reader is: a page and its parameters, in the address after `#`. Never a key.
import { useEffect, useState } from "preact/hooks";

export const PAGES = ["overview", "timeline", "graph", "recall", "jobs", "ledger", "contested"] as const;
export type PageName = (typeof PAGES)[number];

export interface Route { page: PageName; params: Record<string, string> }

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const page = PAGES.find((name) => name === path) ?? "overview";
  return { page, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function href(page: PageName, params: Record<string, string | undefined>): string {
  const given = Object.entries(params).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return `#/${page}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** The entity that parameters name: by its id where a link gives it (several may share a name), else by name. */
export function entityOf(params: Record<string, string>): { entityId: string } | { name: string } | null {
  if (params.id) return { entityId: params.id };
  return params.entity ? { name: params.entity } : null;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
