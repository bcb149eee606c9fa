// Panels above a page: a statement with every record that speaks of it, and a text with what it was quoted for.
import { Answered, Dialog, EntityLink, Period, Table, ToEpisode, ToStatement, When, Ending, Mark, Struck } from "./parts.tsx";
import { hasEnded, objectText } from "./facts.ts";
import { type Panel, useAsked, useNow, useSession } from "./session.ts";
import { ChangeDialog } from "./changes.tsx";
import { told } from "./times.ts";
import type { Answers, RecordSource, Span } from "./types.ts";
import { named, t } from "./words.ts";

export function PanelDialog({ panel, onClose }: { panel: Panel; onClose: () => void }) {
  if (panel.kind === "statement") return <StatementDialog id={panel.id} onClose={onClose} />;
  if (panel.kind === "episode") return <EpisodeDialog id={panel.id} quote={panel.quote} onClose={onClose} />;
  return <ChangeDialog panel={panel} onClose={onClose} />;
}

function StatementDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { graph } = useSession();
  const read = useAsked("GetStatement", { graphId: graph, statementId: id, includePastBeliefs: true });
  return (
    <Dialog title={read.answer?.statement.fact ?? t.statement} onClose={onClose}>
      <Answered of={read}>{(answer) => <Read answer={answer} />}</Answered>
    </Dialog>
  );
}

function Read({ answer }: { answer: Answers["GetStatement"] }) {
  const { statement } = answer;
  return (
    <>
      <p>
        <EntityLink entity={statement.subject} /> · {statement.predicate.name} ·{" "}
        {statement.object.entity ? <EntityLink entity={statement.object.entity} /> : objectText(statement.object)}{" "}
        {statement.contested && <Mark />}
      </p>
      <p class="faint">
        {t.aspect}: {named(statement.aspect)} · {t.confidence}: {(statement.confidence ?? 0).toFixed(2)} · {t.sources}: {statement.sourceCount ?? 0}
      </p>
      <Changes answer={answer} />
      <Spans caption={t.spans} spans={statement.spans ?? []} />
      {answer.pastSpans?.length ? <Spans caption={t.pastSpans} spans={answer.pastSpans} past /> : null}
      <h3>{t.records}</h3>
      <ul class="records">
        {answer.claims?.map((one) => (
          <Said key={one.claimId} source={one.source} what={t.claim} when={period(told(one.start, one.startPrecision), told(one.end, one.endPrecision))} />
        ))}
        {answer.ends?.map((one) => <Said key={one.endId} source={one.source} what={t.end} when={told(one.endedAt, one.endedAtPrecision)} />)}
        {answer.denials?.map((one) => (
          <Said key={one.denialId} source={one.source} what={t.denial} when={period(told(one.deniedFrom), told(one.deniedUntil))} />
        ))}
      </ul>
      {answer.verdicts?.length ? (
        <>
          <h3>{t.verdicts}</h3>
          <ul class="records">
            {answer.verdicts.map((one) => {
              const other = one.statementId === statement.statementId ? one.otherStatementId : one.statementId;
              return (
                <li key={one.verdictId} class={one.revokedAt ? "revoked" : ""}>
                  {named(one.kind)} <ToStatement id={other}>{t.another}</ToStatement> {one.reason} {one.revokedAt && <em>({t.revoked})</em>}
                </li>
              );
            })}
          </ul>
        </>
      ) : null}
    </>
  );
}

function period(from: string, to: string): string {
  return from && to ? `${from} – ${to}` : from ? t.since(from) : to ? t.until(to) : "";
}

function Spans({ caption, spans, past = false }: { caption: string; spans: Span[]; past?: boolean }) {
  const now = useNow();
  return (
    <Table caption={caption} heads={[caption, t.knownFrom, t.knownTo, t.endCause]}>
      {spans.map((span, at) => (
        <tr key={at}>
          <td><Struck ended={past || hasEnded(span, now)}><Period span={span} /></Struck></td>
          <td>{span.knownFrom?.revision} <When at={span.knownFrom?.time} /></td>
          <td>{span.knownTo?.revision} <When at={span.knownTo?.time} /></td>
          <td>{span.endCause && <Ending cause={span.endCause} />}</td>
        </tr>
      ))}
    </Table>
  );
}

function Said({ source, what, when }: { source: RecordSource | undefined; what: string; when: string }) {
  return (
    <li class={source?.revokedAt ? "revoked" : ""}>
      {source?.quote && <blockquote>{source.quote}</blockquote>}
      {source?.episodeId ? <ToEpisode id={source.episodeId} quote={source.quote} /> : t.byUser} {what} <b>{when}</b>
      {source?.attestedAt && <> · {t.said} <When at={source.attestedAt} /></>}
      {source?.reason && <> · {source.reason}</>}
      {source?.revokedAt && <em> · {t.revoked} {t.revisionAt(source.revokedAt.revision ?? "0")}</em>}
    </li>
  );
}

function Changes({ answer: { statement } }: { answer: Answers["GetStatement"] }) {
  const { changes, open } = useSession();
  if (!changes) return null;
  return (
    <p class="row">
      {(["EndStatement", "DenyStatement", "RestoreStatement"] as const).map((change) => (
        <button type="button" key={change} onClick={() => open({ kind: "change", change, of: { id: statement.statementId, name: statement.fact } })}>
          {t[change]} …
        </button>
      ))}
    </p>
  );
}

function EpisodeDialog({ id, quote, onClose }: { id: string; quote?: string | undefined; onClose: () => void }) {
  const { graph } = useSession();
  const read = useAsked("GetEpisode", { graphId: graph, episodeId: id });
  const episode = read.answer?.episode;
  return (
    <Dialog title={episode?.title || episode?.sessionId || episode?.documentId || t.source} onClose={onClose}>
      <Answered of={read}>
        {(answer) => (
          <>
            <p class="faint">
              {t.said} <When at={answer.episode.referenceTime} /> {answer.episode.source && `· ${answer.episode.source}`}{" "}
              {answer.episode.documentVersion ? `· v${answer.episode.documentVersion}` : ""}
            </p>
            {answer.passages?.map((one) => (
              <p key={one.passageId} class="passage">{one.speaker && <b>{one.speaker}: </b>}<Quoted text={one.text ?? ""} quote={quote} /></p>
            ))}
            {!answer.passages?.length && <p>{t.withdrawn}</p>}
          </>
        )}
      </Answered>
    </Dialog>
  );
}

export function Quoted({ text, quote }: { text: string; quote?: string | undefined }) {
  const at = quote ? text.indexOf(quote) : -1;
  if (!quote || at < 0) return <>{text}</>;
  return <>{text.slice(0, at)}<mark>{quote}</mark>{text.slice(at + quote.length)}</>;
}
