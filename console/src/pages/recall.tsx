// Recall: a question as an application asks it, with what found each answer, at which rank, on what evidence.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Answered, EntityLink, Field, Period, Struck, ToEpisode, ToStatement, When } from "../parts.tsx";
import { useAsked, useSession } from "../session.ts";
import { told } from "../times.ts";
import type { FoundBy, PathStep, Recalled, RecalledFact } from "../types.ts";
import { named, t } from "../words.ts";

export function RecallPage({ params }: { params: Record<string, string> }) {
  const { graph } = useSession();
  // What is asked stays in the page: questions are no matter for an address.
  const [typed, setTyped] = useState({ query: "", asOf: "", knownAt: "" });
  const [asked, setAsked] = useState<object | null>(null);
  const type = (part: Partial<typeof typed>) => setTyped((before) => ({ ...before, ...part }));
  const found = useAsked("Recall", asked);

  function ask(event: Event) {
    event.preventDefault();
    setAsked({
      graphIds: [params.graph || graph],
      query: typed.query,
      asOf: typed.asOf ? `${typed.asOf}T12:00:00Z` : undefined,
      knownAt: typed.knownAt ? { revision: Number(typed.knownAt) } : undefined,
      explain: true,
    });
  }

  return (
    <>
      <form class="row" onSubmit={ask}>
        <Field label={t.question}>{(id) => <input id={id} class="wide" required maxLength={4000} value={typed.query} onInput={(event) => type({ query: event.currentTarget.value })} />}</Field>
        <Field label={t.asOfDay}>{(id) => <input id={id} type="date" value={typed.asOf} onInput={(event) => type({ asOf: event.currentTarget.value })} />}</Field>
        <Field label={t.knownAtRevision}>{(id) => <input id={id} type="number" min="0" value={typed.knownAt} onInput={(event) => type({ knownAt: event.currentTarget.value })} />}</Field>
        <button type="submit">{t.ask}</button>
      </form>
      {asked && <Answered of={found}>{(answer) => <Found answer={answer} />}</Answered>}
    </>
  );
}

function Found({ answer }: { answer: Recalled }) {
  return (
    <>
      {answer.engine === "offline" && <p class="notice">{t.offline}</p>}
      {answer.degraded?.length ? <p class="notice">{t.degraded} {answer.degraded.map((one) => named(one.component)).join(", ")}</p> : null}
      <h2>{t.foundFacts}</h2>
      <ol class="found">{answer.facts?.map((one) => <Fact key={one.statement.statementId} fact={one} answer={answer} />)}</ol>
      {!answer.facts?.length && <p>{t.nothing}</p>}
      {answer.voice?.length ? <h2>{t.voice}</h2> : null}
      <ol class="found">
        {answer.voice?.map((one, at) => (
          <Item key={at} found={one.foundBy} score={one.score} left={!one.inContext} evidence={one.evidence} answer={answer}>
            <Struck ended={!one.current}>{one.voiceAspect.text}</Struck>
          </Item>
        ))}
      </ol>
      {answer.passages?.length ? <h2>{t.passages}</h2> : null}
      <ol class="found">
        {answer.passages?.map(({ passage, ...one }) => (
          <Item key={passage.passageId} found={one.foundBy} score={one.score} left={!one.inContext} evidence={one.evidence ? [one.evidence] : []} answer={answer}>
            {passage.speaker && <b>{passage.speaker}: </b>}{passage.text} <small class="faint"><When at={passage.referenceTime} /></small>
          </Item>
        ))}
      </ol>
      <h2>{t.plan}</h2>
      <dl class="plan">
        <dt>{t.intent}</dt><dd>{named(answer.plan?.intent)}</dd>
        <dt>{t.seeds}</dt><dd>{answer.plan?.seeds?.map((one) => <span key={one.entityId}><EntityLink entity={one} /> </span>) ?? "–"}</dd>
        <dt>{t.dates}</dt><dd>{answer.plan?.dates?.map((one) => `${told(one.start)} – ${told(one.end)}`).join(", ") ?? "–"}</dd>
        <dt>{t.abstention}</dt><dd>{(answer.abstentionScore ?? 0).toFixed(2)}</dd>
      </dl>
      <details>
        <summary>{t.prompt} ({answer.tokensUsed ?? 0} {t.tokens})</summary>
        <pre tabIndex={0}>{answer.context}</pre>
      </details>
    </>
  );
}

function Fact({ fact, answer }: { fact: RecalledFact; answer: Recalled }) {
  const { statement } = fact;
  return (
    <Item found={fact.foundBy} score={fact.score} left={!fact.inContext} evidence={fact.evidence} answer={answer}>
      <ToStatement id={statement.statementId}><Struck ended={!fact.current}>{statement.fact}</Struck></ToStatement>{" "}
      {statement.spans?.map((span, at) => <Period key={at} span={span} />)}
      {fact.path?.length ? <div class="faint">{t.path}: {wayOf(fact.path)}</div> : null}
    </Item>
  );
}

function wayOf(path: PathStep[]): string {
  return [path[0]?.fromEntity?.name, ...path.map((step) => step.toEntity?.name)].filter(Boolean).join(" → ");
}

interface ItemProps { children: ComponentChildren; found: FoundBy[] | undefined; score: number | undefined; left: boolean; evidence: string[] | undefined; answer: Recalled }

function Item({ children, found, score, left, evidence, answer }: ItemProps) {
  return (
    <li>
      <div>{children}</div>
      <ul class="legs" aria-label={t.legs}>
        <li>{t.score} {(score ?? 0).toFixed(3)}</li>
        {found?.map((one, at) => (
          <li key={at} title={`${t.score} ${(one.score ?? 0).toFixed(3)}`}>{named(one.leg)} · {named(one.target)} #{one.rank ?? 0}</li>
        ))}
        {left && <li>{t.notInContext}</li>}
      </ul>
      {evidence?.map((name) => {
        const said = answer.evidence?.[name];
        return said?.episodeId ? (
          <div key={name} class="evidence"><code>{name}</code> <ToEpisode id={said.episodeId} quote={said.quote}>{said.quote ? `“${said.quote}”` : t.source}</ToEpisode></div>
        ) : null;
      })}
    </li>
  );
}
