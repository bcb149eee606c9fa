// Timeline: everything that is believed of a subject, slot by slot; what has ended is struck through.
import { memo } from "preact/compat";
import { useMemo, useState } from "preact/hooks";
import { Answered, Ending, EntityForm, Field, Mark, Period, Struck, Suggested, ToStatement } from "../parts.tsx";
import { domainOf, type Entry, objectText, placed, type Slot, slotsOf } from "../facts.ts";
import { entityOf, href } from "../route.ts";
import { useAll, useAsked, useGrowing, useNow, useSession, useSettled } from "../session.ts";
import type { Entity, Statement } from "../types.ts";
import { t } from "../words.ts";

const MOST = 10_000;
/** Rows that are drawn, and looked at, together. */
const ROWS = 50;

export function TimelinePage({ params }: { params: Record<string, string> }) {
  const { graph } = useSession();
  const entity = entityOf(params);
  return (
    <>
      <EntityForm label={t.subject} name={params.entity ?? ""} go={(name) => href("timeline", { graph, entity: name })} />
      {entity ? <Of key={JSON.stringify(entity)} named={entity} /> : <Suggested page="timeline" />}
    </>
  );
}

function Of({ named }: { named: object }) {
  const { graph } = useSession();
  const read = useAsked("GetEntity", { graphId: graph, entity: named });
  const id = read.answer?.entity.entityId;
  const found = useAll("ListStatements", id ? { graphId: graph, subject: { entityId: id }, includeEnded: true } : null, (answer) => answer.statements, MOST);
  return (
    <>
      <Answered of={read}>{(answer) => <Head entity={answer.entity} />}</Answered>
      {id && <Answered of={found}>{(statements) => <Slots statements={statements} more={found.more} />}</Answered>}
    </>
  );
}

function Head({ entity }: { entity: Entity }) {
  const { graph, changes, open } = useSession();
  return (
    <>
      <h2>{entity.name}</h2>
      <p class="row">
        <a href={href("graph", { graph, entity: entity.name, id: entity.entityId })}>{t.graphPage}</a>
        {entity.aliases?.length ? <span class="faint">{t.aliases} {entity.aliases.join(", ")}</span> : null}
        {changes && <button type="button" onClick={() => open({ kind: "change", change: "MergeEntities", of: { id: entity.entityId, name: entity.name } })}>{t.MergeEntities} …</button>}
      </p>
      {entity.mergedEntityIds?.length ? (
        <ul class="chips">{entity.mergedEntityIds.map((id) => <Merged key={id} id={id} />)}</ul>
      ) : null}
    </>
  );
}

function Merged({ id }: { id: string }) {
  const { graph, changes, open } = useSession();
  const read = useAsked("GetEntity", { graphId: graph, entity: { entityId: id } });
  const name = read.answer?.entity.name ?? id;
  return (
    <li>
      {t.merged}: {name}{" "}
      {changes && <button type="button" onClick={() => open({ kind: "change", change: "SplitEntity", of: { id, name } })}>{t.SplitEntity} …</button>}
    </li>
  );
}

function Slots({ statements, more }: { statements: Statement[]; more: boolean }) {
  const now = useNow();
  const [sought, setSought] = useState("");
  const words = useSettled(sought.trim().toLowerCase(), 120);
  const all = useMemo(() => slotsOf(statements, now), [statements, now]);
  const domain = useMemo(() => domainOf(statements.flatMap((one) => one.spans ?? []), now), [statements, now]);
  const facts = useMemo(() => new Map(statements.map((one) => [one.statementId, objectText(one.object)])), [statements]);
  const slots = useMemo(() => (words ? all.map((slot) => sifted(slot, words)).filter((slot) => slot.entries.length) : all), [all, words]);
  const blocks = useMemo(() => slots.map((slot) => ({ slot, parts: cut(slot.entries) })), [slots]);
  const count = (of: Slot[]) => of.reduce((sum, slot) => sum + slot.entries.length, 0);
  const [shown, total] = [count(slots), count(all)];
  let left = useGrowing(shown, 3 * ROWS, 2 * ROWS);
  return (
    <>
      <div class="row">
        <Field label={t.find}>{(id) => <input id={id} type="search" value={sought} onInput={(event) => setSought(event.currentTarget.value)} />}</Field>
        <p role="status" class="faint">{t.facts(shown, total)}</p>
      </div>
      {blocks.map(({ slot, parts }) => {
        let some = 0;
        for (; left > 0 && some < parts.length; some += 1) left -= parts[some]!.length;
        return some > 0 && <SlotBlock key={slot.predicate} slot={slot} parts={parts} some={some} domain={domain} facts={facts} />;
      })}
      {total === 0 && <p>{t.nothing}</p>}
      {more && <p>{t.cut}</p>}
    </>
  );
}

function sifted(slot: Slot, words: string): Slot {
  const meets = (text: string) => text.toLowerCase().includes(words);
  return { ...slot, entries: slot.entries.filter(({ statement }) => meets(statement.fact) || meets(slot.predicate) || meets(objectText(statement.object))) };
}

function cut(entries: Entry[]): Entry[][] {
  return Array.from({ length: Math.ceil(entries.length / ROWS) }, (_, at) => entries.slice(at * ROWS, (at + 1) * ROWS));
}

interface Drawn { domain: [number, number]; facts: Map<string, string> }

// Drawn anew only when something of its own has changed: a long list grows without its beginning being looked at.
const SlotBlock = memo(function SlotBlock({ slot, parts, some, ...drawn }: Drawn & { slot: Slot; parts: Entry[][]; some: number }) {
  return (
    <section class="slot">
      <h3>{slot.predicate} {slot.contested && <Mark />}</h3>
      <div role="list" class="entries">{parts.slice(0, some).map((part, at) => <Rows key={at} part={part} {...drawn} />)}</div>
    </section>
  );
});

const Rows = memo(function Rows({ part, ...drawn }: Drawn & { part: Entry[] }) {
  return (
    <div role="none" class="rows" style={{ containIntrinsicSize: `auto ${part.length * 2.3}rem` }}>
      {part.map((entry, at) => <Row key={at} entry={entry} {...drawn} />)}
    </div>
  );
});

function Row({ entry: { statement, span, ended }, domain, facts }: Drawn & { entry: Entry }) {
  const { left, width } = placed(span, domain);
  const cause = span.endCause;
  return (
    <div role="listitem" class={ended ? "entry ended" : "entry"}>
      <span class="lane" aria-hidden="true"><i class={span.invalidAt ? "" : "open"} style={{ left: `${left}%`, width: `${width}%` }} /></span>
      <span class="what"><ToStatement id={statement.statementId}><Struck ended={ended}>{objectText(statement.object)}</Struck></ToStatement></span>
      <Period span={span} />
      <span class="why">{cause && <Ending cause={cause} by={facts.get(cause.statementId ?? "")} />}</span>
    </div>
  );
}
