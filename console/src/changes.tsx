// Changes: what a call is about to do is said in words, and done only when that is confirmed.
import { useMemo, useState } from "preact/hooks";
import { CallFailed } from "./api.ts";
import { Dialog, EntityBox, Failed, Field } from "./parts.tsx";
import { type Panel, useAsked, useSession } from "./session.ts";
import type { Change } from "./types.ts";
import { t } from "./words.ts";

type ChangePanel = Extract<Panel, { kind: "change" }>;

const SAYS: Record<Change, (name: string) => string> = {
  EndStatement: (name) => t.confirmEnd(name),
  DenyStatement: (name) => t.confirmDeny(name),
  RestoreStatement: (name) => t.confirmRestore(name),
  MergeEntities: (name) => t.confirmMerge(name),
  SplitEntity: (name) => t.confirmSplit(name),
};

interface Filled { from: string; until: string; other: string; reason: string }

const midnight = (day: string) => (day ? `${day}T00:00:00Z` : undefined);

function bodyOf(change: Change, id: string, filled: Filled, otherId: string | undefined): object {
  switch (change) {
    case "EndStatement":
      return { statementId: id, endedAt: midnight(filled.from), endedAtPrecision: filled.from ? "PRECISION_DAY" : undefined };
    case "DenyStatement":
      return { statementId: id, deniedFrom: midnight(filled.from), deniedUntil: midnight(filled.until) };
    case "RestoreStatement":
      return { statementId: id };
    case "MergeEntities":
      return { intoEntityId: id, entityIds: [otherId] };
    case "SplitEntity":
      return { entityId: id };
  }
}

export function ChangeDialog({ panel: { change, of }, onClose }: { panel: ChangePanel; onClose: () => void }) {
  const { api, graph, again } = useSession();
  const [filled, setFilled] = useState<Filled>({ from: "", until: "", other: "", reason: "" });
  const [failure, setFailure] = useState<CallFailed>();
  const [doing, setDoing] = useState(false);
  // One name for the whole dialog: a second try after a lost answer makes no second change.
  const requestId = useMemo(() => crypto.randomUUID(), []);
  const fill = (part: Partial<Filled>) => setFilled((before) => ({ ...before, ...part }));
  const other = useAsked("GetEntity", change === "MergeEntities" && filled.other ? { graphId: graph, entity: { name: filled.other } } : null);

  async function confirm(event: Event) {
    event.preventDefault();
    setDoing(true);
    try {
      const body = bodyOf(change, of.id, filled, other.answer?.entity.entityId);
      await api.change(change, { graphId: graph, reason: filled.reason, requestId, ...body });
      again();
      onClose();
    } catch (error) {
      setFailure(error instanceof CallFailed ? error : new CallFailed("INTERNAL", String(error), 0));
      setDoing(false);
    }
  }

  const day = (label: string, name: "from" | "until") => (
    <Field label={label}>{(id) => <input id={id} type="date" value={filled[name]} onInput={(event) => fill({ [name]: event.currentTarget.value })} />}</Field>
  );
  return (
    <Dialog title={t[change]} onClose={onClose}>
      <form onSubmit={confirm}>
        <p>{SAYS[change](of.name)}</p>
        {change === "EndStatement" && day(t.endedAt, "from")}
        {change === "DenyStatement" && <div class="row">{day(t.deniedFrom, "from")}{day(t.deniedUntil, "until")}</div>}
        {change === "MergeEntities" && <EntityBox label={t.other} value={filled.other} onInput={(name) => fill({ other: name })} />}
        <Field label={t.why}>
          {(id) => <input id={id} maxLength={1000} value={filled.reason} onInput={(event) => fill({ reason: event.currentTarget.value })} />}
        </Field>
        <p class="faint">{t.confirmNote}</p>
        {failure && <Failed failure={failure} />}
        {other.failure && <Failed failure={other.failure} />}
        <p class="row">
          <button type="submit" class="grave" disabled={doing || (change === "MergeEntities" && !other.answer)}>{t[change]}</button>
          <button type="button" onClick={onClose}>{t.cancel}</button>
        </p>
      </form>
    </Dialog>
  );
}
