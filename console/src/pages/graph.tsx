// The graph around an entity: what holds at one time, as believed at one revision. Two sliders, two times.
import { useMemo, useState } from "preact/hooks";
import { Answered, EntityForm, EntityLink, Field, Period, Suggested, Table, ToStatement } from "../parts.tsx";
import { domainOf, objectText } from "../facts.ts";
import { frameOf, type Line, linesOf, type Node, type Spot, spotsOf } from "../layout.ts";
import { entityOf, href } from "../route.ts";
import { useAsked, useNow, useSession, useSettled } from "../session.ts";
import { DAY, dayOf, told } from "../times.ts";
import type { Answers, Span, Statement } from "../types.ts";
import { t } from "../words.ts";

const MOST_SPOTS = 60;
const CAPS = { maxNodes: 400, maxEdges: 2000, maxEdgesPerLevel: 1000 };

type Subgraph = Answers["GetSubgraph"];

export function GraphPage({ params }: { params: Record<string, string> }) {
  const { graph } = useSession();
  const name = params.entity ?? "";
  const seed = entityOf(params);
  const depth = Number(params.depth ?? 1);
  return (
    <>
      <div class="row">
        <EntityForm label={t.centre} name={name} go={(entity) => href("graph", { graph, entity, depth: params.depth })} />
        <Field label={t.depth}>
          {(id) => (
            <select id={id} value={depth} onChange={(event) => { location.hash = href("graph", { ...params, graph, depth: event.currentTarget.value }); }}>
              {[1, 2, 3].map((one) => <option key={one} value={one}>{one}</option>)}
            </select>
          )}
        </Field>
      </div>
      {seed ? <Around key={JSON.stringify([seed, depth])} name={name} seed={seed} depth={depth} /> : <Suggested page="graph" />}
    </>
  );
}

interface Centre { name: string; seed: object; depth: number }

/** Reads all that ever held first: it fixes places and the ends of the sliders. */
function Around({ name, seed, depth }: Centre) {
  const { graph } = useSession();
  const whole = useAsked("GetSubgraph", { graphId: graph, seeds: [seed], depth, includeEnded: true, ...CAPS });
  const about = useAsked("GetGraph", { graphId: graph });
  return (
    <Answered of={whole}>
      {(answer) => (
        <Answered of={about}>
          {({ graph: { revision } }) => <Slid name={name} seed={seed} depth={depth} whole={answer} newest={Number(revision?.revision ?? 0)} />}
        </Answered>
      )}
    </Answered>
  );
}

function Slid({ name, seed, depth, whole, newest }: Centre & { whole: Subgraph; newest: number }) {
  const { graph } = useSession();
  const now = useNow();
  const spans = useMemo(() => (whole.edges ?? []).flatMap((edge) => edge.statement.spans ?? []), [whole]);
  const [low, high] = useMemo(() => domainOf(spans, now).map((time) => Math.floor(time / DAY)) as [number, number], [spans, now]);
  const today = Math.floor(now / DAY);
  const [day, setDay] = useState(today);
  const [revision, setRevision] = useState(newest);
  const asked = useSettled(`${day} ${revision}`, 80);
  const [at, known] = asked.split(" ").map(Number) as [number, number];
  const then = useAsked("GetSubgraph", {
    graphId: graph,
    seeds: [seed],
    depth,
    // The end of the day: what began on it counts. Today is now.
    asOf: at === today ? undefined : `${dayOf(at * DAY)}T23:59:59Z`,
    knownAt: known === newest ? undefined : { revision: known },
    ...CAPS,
  });
  return (
    <>
      <div class="sliders">
        <Slider label={t.asOf} min={low} max={high} value={day} told={day === today ? `${dayOf(now)} (${t.now})` : dayOf(day * DAY)} onInput={setDay} />
        <Slider label={t.knownAt} min={0} max={newest} value={revision} told={knownText(revision, newest, spans)} onInput={setRevision} />
      </div>
      {then.failure?.reason === "ENTITY_NOT_FOUND" ? <Drawing name={name} whole={whole} then={{}} /> : (
        <Answered of={then}>{(answer) => <Drawing name={name} whole={whole} then={answer} />}</Answered>
      )}
    </>
  );
}

function knownText(revision: number, newest: number, spans: readonly Span[]): string {
  let [best, time] = [-1, ""];
  for (const { knownFrom } of spans) {
    const found = Number(knownFrom?.revision ?? 0);
    if (found <= revision && found > best) [best, time] = [found, told(knownFrom?.time)];
  }
  const words = t.revisionAt(String(revision));
  return revision === newest ? `${words} (${t.now})` : time ? `${words} · ${time}` : words;
}

function Slider({ label, min, max, value, told: text, onInput }: { label: string; min: number; max: number; value: number; told: string; onInput: (value: number) => void }) {
  return (
    <Field label={label}>
      {(id) => (
        <>
          <input id={id} type="range" min={min} max={max} value={value} aria-valuetext={text} onInput={(event) => onInput(event.currentTarget.valueAsNumber)} />
          <output for={id}>{text}</output>
        </>
      )}
    </Field>
  );
}

function Drawing({ name, whole, then }: { name: string; whole: Subgraph; then: Subgraph }) {
  const held = useMemo(() => (then.edges ?? []).map((edge) => edge.statement), [then]);
  const lines = useMemo(() => linesOf((whole.edges ?? []).map((edge) => edge.statement)), [whole]);
  const nodes = useMemo(() => nodesOf(whole, then), [whole, then]);
  const spots = useMemo(() => spotsOf(nodes, lines, MOST_SPOTS), [nodes, lines]);
  return (
    <>
      <p role="status" class="holding">{t.holding(held.length)}</p>
      <Picture name={name} spots={spots} past={lines} held={linesOf(held)} />
      {nodes.length > spots.size && <p class="faint">{t.hidden(nodes.length - spots.size)}</p>}
      {(whole.truncated || then.truncated) && <p class="faint">{t.cut}</p>}
      <Table caption={t.whatHolds} heads={[t.subject, t.predicate, t.object, t.spans]}>
        {held.map((one) => <HeldRow key={one.statementId} statement={one} />)}
      </Table>
    </>
  );
}

function nodesOf(whole: Subgraph, then: Subgraph): Node[] {
  const found = new Map<string, Node>();
  for (const { entity, distance } of [...(whole.nodes ?? []), ...(then.nodes ?? [])]) {
    if (!found.has(entity.entityId)) found.set(entity.entityId, { id: entity.entityId, name: entity.name, distance: distance ?? 0 });
  }
  return [...found.values()];
}

function HeldRow({ statement }: { statement: Statement }) {
  return (
    <tr>
      <td><EntityLink entity={statement.subject} page="graph" /></td>
      <td><ToStatement id={statement.statementId}>{statement.predicate.name}</ToStatement></td>
      <td>{statement.object.entity ? <EntityLink entity={statement.object.entity} page="graph" /> : objectText(statement.object)}</td>
      <td>{statement.spans?.map((span, at) => <div key={at}><Period span={span} /></div>)}</td>
    </tr>
  );
}

function Picture({ name, spots, past, held }: { name: string; spots: Map<string, Spot>; past: Line[]; held: Line[] }) {
  const { graph } = useSession();
  const frame = frameOf(spots.values());
  const holding = new Set(held.map((line) => line.statement.statementId));
  const reached = new Set(held.flatMap((line) => [line.from, line.to]));
  const drawn = (lines: Line[]) => lines.filter((line) => spots.has(line.from) && spots.has(line.to));
  return (
    <svg class="graph" viewBox={`${frame.x} ${frame.y} ${frame.width} ${frame.height}`} role="group" aria-label={t.graphOf(name)}>
      <g class="past" aria-hidden="true">
        {drawn(past).filter((line) => !holding.has(line.statement.statementId)).map((line) => <Edge key={line.statement.statementId} line={line} spots={spots} />)}
      </g>
      <g class="held" aria-hidden="true">{drawn(held).map((line) => <Edge key={line.statement.statementId} line={line} spots={spots} />)}</g>
      {[...spots.values()].map((spot) => (
        <a key={spot.id} href={href("graph", { graph, entity: spot.name, id: spot.id })} class={spot.distance === 0 ? "seed" : reached.has(spot.id) ? "" : "away"}>
          <circle cx={spot.x} cy={spot.y} r={spot.distance === 0 ? 13 : 8} />
          <text x={spot.x} y={spot.y + (spot.distance === 0 ? 31 : 25)}>{spot.name.length > 22 ? `${spot.name.slice(0, 21)}…` : spot.name}</text>
        </a>
      ))}
    </svg>
  );
}

function Edge({ line, spots }: { line: Line; spots: Map<string, Spot> }) {
  const [from, to] = [spots.get(line.from)!, spots.get(line.to)!];
  // The word stands nearer to the outer end: there is more room.
  const share = from.distance <= to.distance ? 0.6 : 0.4;
  return (
    <>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      <text x={from.x + (to.x - from.x) * share} y={from.y + (to.y - from.y) * share - 4}>{line.statement.predicate.name}</text>
    </>
  );
}
