// Facts as they are drawn: one entry a span, slot by slot, and what ended each.
import { millis } from "./times.ts";
import type { Cause, Literal, ObjectValue, Span, Statement } from "./types.ts";
import { t } from "./words.ts";

/** One stretch in which a statement held. */
export interface Entry { statement: Statement; span: Span; ended: boolean }

/** What competes: the entries of one subject and predicate. */
export interface Slot { predicate: string; contested: boolean; entries: Entry[] }

export function objectText(object: ObjectValue | undefined): string {
  return object?.entity?.name ?? literalText(object?.literal);
}

function literalText(literal: Literal | undefined): string {
  if (!literal) return "";
  return String(literal.stringValue ?? literal.timeValue?.slice(0, 10) ?? literal.numberValue ?? literal.boolValue ?? 0);
}

export function hasEnded(span: Span, now: number): boolean {
  return span.invalidAt !== undefined && millis(span.invalidAt) <= now;
}

const start = (span: Span) => (span.validAt ? millis(span.validAt) : -Infinity);
const end = (span: Span) => (span.invalidAt ? millis(span.invalidAt) : Infinity);
const order = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);

/** Slots by name, each in order of world time: an unknown start first, an open end last. */
export function slotsOf(statements: readonly Statement[], now: number): Slot[] {
  const slots = new Map<string, Slot>();
  for (const statement of statements) {
    const name = statement.predicate.name;
    const slot = slots.get(name) ?? { predicate: name, contested: false, entries: [] };
    slots.set(name, slot);
    slot.contested ||= statement.contested === true;
    for (const span of statement.spans ?? []) slot.entries.push({ statement, span, ended: hasEnded(span, now) });
  }
  for (const slot of slots.values()) {
    slot.entries.sort((a, b) => order(start(a.span), start(b.span)) || order(end(a.span), end(b.span)));
  }
  return [...slots.values()].sort((a, b) => a.predicate.localeCompare(b.predicate));
}

/** The stretch of time that a set of spans covers, now included, with a little room. */
export function domainOf(spans: Iterable<Span>, now: number): [number, number] {
  let [low, high] = [now, now];
  for (const span of spans) {
    for (const time of [span.validAt, span.invalidAt]) {
      if (!time) continue;
      low = Math.min(low, millis(time));
      high = Math.max(high, millis(time));
    }
  }
  const room = Math.max(86_400_000, (high - low) * 0.02);
  return [low - room, high + room];
}

/** Where a span lies in a domain, in per cent. */
export function placed(span: Span, [low, high]: [number, number]): { left: number; width: number } {
  const at = (time: number) => (100 * (Math.min(Math.max(time, low), high) - low)) / (high - low);
  const [left, right] = [at(start(span)), at(end(span))];
  return { left, width: Math.max(right - left, 0.6) };
}

/** Why a span ended, in words. Where another statement ended it, that is named beside. */
export function causeText(cause: Cause): string {
  const user = cause.origin === "RECORD_ORIGIN_USER";
  switch (cause.kind) {
    case "CAUSE_KIND_CLAIM":
      return t.replacedBy;
    case "CAUSE_KIND_STATED_END":
      return t.causeStated;
    case "CAUSE_KIND_DENIAL":
      return user ? t.causeDenialUser : t.causeDenial;
    default:
      if (cause.origin === "RECORD_ORIGIN_SOURCE_REMOVED") return t.causeRemoved;
      return user ? t.causeEndUser : t.causeEnd;
  }
}
