// Contested slots: where evidence wavers, with everything that was ever held in the slot.
import { useMemo } from "preact/hooks";
import { Answered, Ending, EntityLink, Mark, Period, Struck, ToStatement } from "../parts.tsx";
import { objectText } from "../facts.ts";
import { useAll, useAsked, useSession } from "../session.ts";
import type { Statement, TimelineEntry } from "../types.ts";
import { t } from "../words.ts";

const MOST = 1000;
const SLOTS = 50;

export function ContestedPage() {
  const { graph } = useSession();
  const found = useAll("ListStatements", { graphId: graph, contested: true, includeEnded: true }, (answer) => answer.statements, MOST);
  return (
    <>
      <p>{t.contestedHint}</p>
      <Answered of={found}>{(statements) => <Slots statements={statements} />}</Answered>
    </>
  );
}

function Slots({ statements }: { statements: Statement[] }) {
  const slots = useMemo(() => {
    const firsts = new Map<string, Statement>();
    for (const one of statements) firsts.set(`${one.subject.entityId} ${one.predicate.predicateId}`, one);
    return [...firsts.values()];
  }, [statements]);
  if (!slots.length) return <p>{t.noContested}</p>;
  return (
    <>
      {slots.slice(0, SLOTS).map((one) => <Slot key={one.statementId} of={one} />)}
      {slots.length > SLOTS && <p>{t.cut}</p>}
    </>
  );
}

function Slot({ of }: { of: Statement }) {
  const { graph } = useSession();
  const read = useAsked("GetTimeline", {
    graphId: graph,
    subject: { entityId: of.subject.entityId },
    predicate: { predicateId: of.predicate.predicateId },
  });
  return (
    <section class="slot">
      <h2><EntityLink entity={of.subject} /> · {of.predicate.name} <Mark /></h2>
      <Answered of={read}>{(answer) => <div role="list" class="entries plain">{answer.entries?.map((one, at) => <Entry key={at} entry={one} all={answer.entries ?? []} />)}</div>}</Answered>
    </section>
  );
}

function Entry({ entry, all }: { entry: TimelineEntry; all: TimelineEntry[] }) {
  const cause = entry.span.endCause;
  const by = all.find((one) => one.statementId === cause?.statementId);
  const ended = entry.struck === true;
  return (
    <div role="listitem" class={ended ? "entry ended" : "entry"}>
      <span class="what"><ToStatement id={entry.statementId}><Struck ended={ended}>{objectText(entry.object)}</Struck></ToStatement> {entry.contested && <Mark />}</span>
      <Period span={entry.span} />
      <span class="why">{cause && <Ending cause={cause} by={by && objectText(by.object)} />}</span>
    </div>
  );
}
