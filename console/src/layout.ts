// Layout: where entities stand around one of them. Rings by distance, each entity near the one it was reached from;
// the same for the same graph, so that nothing jumps while a slider moves.
import type { Statement } from "./types.ts";

export interface Spot { id: string; name: string; x: number; y: number; distance: number }
export interface Line { statement: Statement; from: string; to: string }

export interface Node { id: string; name: string; distance: number }

/** From ring to ring, in units of the drawing. */
const RING = 190;
/** Least length of a ring that one entity takes. */
const ROOM = 46;

export function linesOf(statements: readonly Statement[]): Line[] {
  return statements.flatMap((statement) => {
    const to = statement.object.entity?.entityId;
    return to ? [{ statement, from: statement.subject.entityId, to }] : [];
  });
}

/** At most `most` spots, nearest first; the rest is for the table alone. */
export function spotsOf(nodes: readonly Node[], lines: readonly Line[], most: number): Map<string, Spot> {
  const spots = new Map<string, Spot>();
  const angles = new Map<string, number>();
  const byDistance = [...nodes].sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name)).slice(0, most);
  const deepest = byDistance.at(-1)?.distance ?? 0;
  let radius = 0;
  for (let distance = 0; distance <= deepest; distance += 1) {
    const ring = byDistance.filter((node) => node.distance === distance);
    if (distance > 0) radius = Math.max(radius + RING, (ring.length * ROOM) / (2 * Math.PI));
    const wished = ring.map((node) => ({ node, angle: wish(node, lines, angles) }));
    wished.sort((a, b) => a.angle - b.angle || a.node.name.localeCompare(b.node.name));
    const turned = distance < 2 ? evenly(ring.length) : apart(wished.map((one) => one.angle), ROOM / radius);
    wished.forEach(({ node }, at) => {
      const angle = turned[at]!;
      angles.set(node.id, angle);
      spots.set(node.id, { id: node.id, name: node.name, distance, x: radius * 1.35 * Math.cos(angle), y: radius * Math.sin(angle) });
    });
  }
  return spots;
}

/** Around the whole ring, off the axes by a little: names of neighbours beside each other would meet there. */
function evenly(count: number): number[] {
  return Array.from({ length: count }, (_, at) => -Math.PI / 2 + 0.26 + (2 * Math.PI * at) / count);
}

/** As wished, in the same order, but none nearer to the next than `gap`; what is pushed is pushed to both sides. */
function apart(wished: readonly number[], gap: number): number[] {
  const turned: number[] = [];
  for (const angle of wished) turned.push(Math.max(angle, (turned.at(-1) ?? -Infinity) + gap));
  const pushed = turned.reduce((sum, angle, at) => sum + angle - wished[at]!, 0) / Math.max(turned.length, 1);
  return turned.map((angle) => angle - pushed);
}

/** Where a node would like to stand: by those of the ring before that it is joined to. */
function wish(node: Node, lines: readonly Line[], angles: ReadonlyMap<string, number>): number {
  const near: number[] = [];
  for (const line of lines) {
    const other = line.from === node.id ? line.to : line.to === node.id ? line.from : undefined;
    const angle = other === undefined ? undefined : angles.get(other);
    if (angle !== undefined) near.push(angle);
  }
  return near.length ? near.reduce((sum, angle) => sum + angle, 0) / near.length : 0;
}

/** The frame around all spots, with room for their names. */
export function frameOf(spots: Iterable<Spot>): { x: number; y: number; width: number; height: number } {
  let [left, right, top, bottom] = [-200, 200, -120, 120];
  for (const spot of spots) {
    left = Math.min(left, spot.x - 110);
    right = Math.max(right, spot.x + 110);
    top = Math.min(top, spot.y - 50);
    bottom = Math.max(bottom, spot.y + 50);
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}
