// Small parts that pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { CallFailed } from "./api.ts";
import { href } from "./route.ts";
import { type Asked, useAsked, useSession, useSettled } from "./session.ts";
import { told, toldPeriod } from "./times.ts";
import type { Cause, Entity, Instant, Span } from "./types.ts";
import { causeText } from "./facts.ts";
import { named, t } from "./words.ts";

type Children = { children?: ComponentChildren };

/** What was asked for; before it is there, that it is read, or why it can't be. */
export function Answered<A>({ of, children }: { of: Asked<A>; children: (answer: A) => ComponentChildren }) {
  if (of.failure) return <Failed failure={of.failure} />;
  if (of.answer === undefined) return <p role="status" class="faint" aria-busy={of.asking}>{of.asking ? t.loading : ""}</p>;
  return <div class={of.asking ? "asking" : ""} aria-busy={of.asking}>{children(of.answer)}</div>;
}

export function Failed({ failure }: { failure: CallFailed }) {
  const words = named(failure.reason);
  const known = words !== failure.reason.toLowerCase().replaceAll("_", " ");
  return (
    <div role="alert" class="failure">
      <p>{known ? words : failure.message} <code>{failure.reason}</code></p>
      {failure.violations.length > 0 && (
        <ul>{failure.violations.map((one) => <li key={one.field}><code>{one.field}</code> {one.description}</li>)}</ul>
      )}
    </div>
  );
}

export function Table({ caption, heads, children, numbers = [] }: Children & { caption: string; heads: string[]; numbers?: number[] }) {
  const numeric = numbers.map((n) => `n${n}`).join(" ");
  return (
    // A table that is wider than the page scrolls by itself; so the keyboard must reach it.
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class={numeric}>
        <caption>{caption}</caption>
        <thead><tr>{heads.map((head) => <th scope="col" key={head}>{head}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function When({ at, precision, children }: Children & { at?: Instant | undefined; precision?: string | undefined }) {
  return at ? <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`}>{children ?? told(at, precision)}</time> : null;
}

/** `2024-02-01 – 2026-03-01`; an open end is said as such. */
export function Period({ span }: { span: Span }) {
  const [from, to] = toldPeriod(span.validAt, span.invalidAt, [span.validAtPrecision, span.invalidAtPrecision]);
  return (
    <span class="period">
      {span.validAt ? <When at={span.validAt}>{from}</When> : <em>{t.unknownStart}</em>}
      {" – "}
      {span.invalidAt ? <When at={span.invalidAt}>{to}</When> : <em>{t.today}</em>}
    </span>
  );
}

/** A text, struck through for eye and ear when it has ended. */
export function Struck({ ended, children }: Children & { ended: boolean }) {
  return ended ? <s>{children}<span class="unseen"> ({t.ended})</span></s> : <>{children}</>;
}

export function EntityLink({ entity, page = "timeline" }: { entity: Entity; page?: "timeline" | "graph" }) {
  const { graph } = useSession();
  return <a href={href(page, { graph, entity: entity.name, id: entity.entityId })}>{entity.name}</a>;
}

export function ToStatement({ id, children }: Children & { id: string }) {
  const { open } = useSession();
  return <button type="button" class="link" onClick={() => open({ kind: "statement", id })}>{children}</button>;
}

export function ToEpisode({ id, quote, children }: Children & { id: string; quote?: string | undefined }) {
  const { open } = useSession();
  return <button type="button" class="link" onClick={() => open({ kind: "episode", id, quote })}>{children ?? t.source}</button>;
}

/** What ended a span: the fact that took its place, or the record that says so, and the text that holds it. */
export function Ending({ cause, by }: { cause: Cause; by?: string | undefined }) {
  return (
    <span class="ending">
      {t.endedBy} {causeText(cause)}
      {cause.kind === "CAUSE_KIND_CLAIM" && cause.statementId && <> <ToStatement id={cause.statementId}>{by ?? t.another}</ToStatement></>}
      {cause.episodeId && <> · <ToEpisode id={cause.episodeId} /></>}
    </span>
  );
}

export function Mark() {
  return <span class="mark">{t.contestedMark}</span>;
}

export function Field({ label, children }: { label: string; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return <div class="field"><label for={id}>{label}</label>{children(id)}</div>;
}

/** A box for the name of an entity, which offers those that begin as it does. */
export function EntityBox({ label, value, onInput }: { label: string; value: string; onInput: (name: string) => void }) {
  const { graph } = useSession();
  const prefix = useSettled(value, 150);
  const found = useAsked("ListEntities", { graphId: graph, namePrefix: prefix, pageSize: 20 });
  const list = useId();
  return (
    <Field label={label}>
      {(id) => (
        <>
          <input id={id} list={list} value={value} required autocomplete="off" spellcheck={false} placeholder={t.subjectHint} onInput={(event) => onInput(event.currentTarget.value)} />
          <datalist id={list}>{found.answer?.entities?.map((one) => <option key={one.entityId} value={one.name} />)}</datalist>
        </>
      )}
    </Field>
  );
}

/** A form for the entity that a page is about; submitting it goes to `go(name)`. */
export function EntityForm({ label, name, go }: { label: string; name: string; go: (name: string) => string }) {
  const [value, setValue] = useState(name);
  useEffect(() => setValue(name), [name]);
  return (
    <form class="row" onSubmit={(event) => { event.preventDefault(); location.hash = go(value.trim()); }}>
      <EntityBox label={label} value={value} onInput={setValue} />
      <button type="submit">{t.show}</button>
    </form>
  );
}

/** A first look at a graph that nothing was chosen in yet: its entities with most statements. */
export function Suggested({ page }: { page: "timeline" | "graph" }) {
  const { graph } = useSession();
  const found = useAsked("ListEntities", { graphId: graph, pageSize: 200 });
  return (
    <Answered of={found}>
      {(answer) => (
        <ul class="chips">
          {[...(answer.entities ?? [])]
            .sort((a, b) => Number(b.statementCount ?? 0) - Number(a.statementCount ?? 0))
            .slice(0, 40)
            .map((one) => <li key={one.entityId}><EntityLink entity={one} page={page} /> <small>{one.statementCount ?? 0}</small></li>)}
        </ul>
      )}
    </Answered>
  );
}

/** A modal dialog; Escape and the button close it, the focus returns to where it was. */
export function Dialog({ title, onClose, children }: Children & { title: string; onClose: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" onClick={() => box.current?.close()}>{t.close}</button>
      </header>
      {children}
    </dialog>
  );
}
