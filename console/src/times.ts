// Times as they are shown: UTC, ISO-like, no finer than they are known.
import type { Instant } from "./types.ts";

/** `2024`, `2024-02`, `2024 Q1`, `2024-02-01`, `2024-02-01 09:12`. */
export function told(time: Instant | undefined, precision?: string): string {
  if (!time) return "";
  const day = time.slice(0, 10);
  switch (precision) {
    case "PRECISION_YEAR":
      return day.slice(0, 4);
    case "PRECISION_QUARTER":
      return `${day.slice(0, 4)} Q${Math.ceil(Number(day.slice(5, 7)) / 3)}`;
    case "PRECISION_MONTH":
      return day.slice(0, 7);
    case "PRECISION_WEEK":
    case "PRECISION_DAY":
      return day;
    default: {
      const clock = time.slice(11, 16);
      return clock === "00:00" ? day : `${day} ${clock}`;
    }
  }
}

/** The two ends of a period: days, unless it begins and ends on one. */
export function toldPeriod(from: Instant | undefined, to: Instant | undefined, precisions: readonly (string | undefined)[]): [string, string] {
  const short = from?.slice(0, 10) !== to?.slice(0, 10);
  const end = (time: Instant | undefined, precision?: string) => (short && (!precision || precision === "PRECISION_INSTANT") ? (time ?? "").slice(0, 10) : told(time, precision));
  return [end(from, precisions[0]), end(to, precisions[1])];
}

export const DAY = 86_400_000;

/** Milliseconds since 1970 of an instant. */
export function millis(time: Instant): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));
}

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Credits of micro-credits, to the last digit: `0.012500`. */
export function credits(micros: string | undefined): string {
  const value = BigInt(micros ?? "0");
  const size = value < 0n ? -value : value;
  const fraction = (size % 1_000_000n).toString().padStart(6, "0");
  const whole = (size / 1_000_000n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  return `${value < 0n ? "−" : ""}${whole}.${fraction}`;
}
