// The frame: the key's door, the choice of graph and page, language and colours, what lies open above.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { Api, CallFailed, changesAllowed } from "./api.ts";
import { Failed, Field } from "./parts.tsx";
import { PanelDialog } from "./panels.tsx";
import { ContestedPage } from "./pages/contested.tsx";
import { GraphPage } from "./pages/graph.tsx";
import { JobsPage } from "./pages/jobs.tsx";
import { LedgerPage } from "./pages/ledger.tsx";
import { Overview } from "./pages/overview.tsx";
import { RecallPage } from "./pages/recall.tsx";
import { TimelinePage } from "./pages/timeline.tsx";
import { href, type PageName, PAGES, useRoute } from "./route.ts";
import { type Panel, type Session, SessionContext } from "./session.ts";
import type { Graph } from "./types.ts";
import { type Language, NAMES, preferred, speak, t } from "./words.ts";

const titles = (): Record<PageName, string> => ({
  overview: t.overview,
  timeline: t.timeline,
  graph: t.graphPage,
  recall: t.recall,
  jobs: t.jobs,
  ledger: t.ledger,
  contested: t.contested,
});

export function App() {
  const [language, setLanguage] = useState<Language>(preferred);
  const [entered, setEntered] = useState<Entered>();
  speak(language);
  const forget = useCallback(() => setEntered(undefined), []);
  useEffect(() => {
    // A page that the browser keeps for "back" must not keep the key.
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, [forget]);
  const controls = <Controls language={language} onLanguage={setLanguage} onForget={entered && forget} />;
  return entered ? <Console key={language} {...entered} controls={controls} /> : <Door key={language} onEnter={setEntered} controls={controls} />;
}

interface Entered { api: Api; graphs: Graph[]; changes: boolean }
type WithControls = { controls: preact.JSX.Element };

function Controls({ language, onLanguage, onForget }: { language: Language; onLanguage: (language: Language) => void; onForget: (() => void) | undefined }) {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "auto");
  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  return (
    <div class="controls">
      <Field label={t.language}>
        {(id) => (
          <select id={id} value={language} onChange={(event) => onLanguage(event.currentTarget.value as Language)}>
            {Object.entries(NAMES).map(([code, name]) => <option key={code} value={code}>{name}</option>)}
          </select>
        )}
      </Field>
      <Field label={t.theme}>
        {(id) => (
          <select id={id} value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
            <option value="auto">{t.themeAuto}</option>
            <option value="light">{t.themeLight}</option>
            <option value="dark">{t.themeDark}</option>
          </select>
        )}
      </Field>
      {onForget && <button type="button" onClick={onForget}>{t.forget}</button>}
    </div>
  );
}

/** Asks for a key and tries it. It is never given to anything that would store it. */
function Door({ onEnter, controls }: WithControls & { onEnter: (entered: Entered) => void }) {
  const [key, setKey] = useState("");
  const [failure, setFailure] = useState<CallFailed>();
  const [trying, setTrying] = useState(false);

  async function enter(event: Event) {
    event.preventDefault();
    setTrying(true);
    const api = new Api(key.trim());
    try {
      const [{ graphs = [] }, changes] = await Promise.all([api.call("ListGraphs", { pageSize: 1000 }), changesAllowed()]);
      onEnter({ api, graphs, changes });
    } catch (error) {
      setFailure(error instanceof CallFailed ? error : new CallFailed("CONSOLE_UNREACHABLE", String(error), 0));
      setTrying(false);
    }
  }

  return (
    <main class="door">
      {controls}
      <h1>{t.title}</h1>
      <p>{t.tagline}</p>
      <form onSubmit={enter}>
        <Field label={t.key}>
          {(id) => (
            // No password field: browsers offer to keep those. The style sheet hides what is typed.
            <input id={id} class="secret" type="text" required autofocus autocomplete="off" autocapitalize="none" spellcheck={false} value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          )}
        </Field>
        <p class="faint">{t.keyHint}</p>
        <button type="submit" disabled={trying}>{t.enter}</button>
        {failure && <Failed failure={failure} />}
      </form>
    </main>
  );
}

function Console({ api, graphs, changes, controls }: Entered & WithControls) {
  const { page, params } = useRoute();
  const [turn, setTurn] = useState(0);
  const [panels, setPanels] = useState<Panel[]>([]);
  const graph = params.graph ?? graphs[0]?.graphId ?? "";
  const session: Session = useMemo(
    () => ({ api, graph, changes, turn, again: () => setTurn((before) => before + 1), open: (panel) => setPanels((before) => [...before, panel]) }),
    [api, graph, changes, turn],
  );
  const title = titles()[page];
  useEffect(() => { document.title = `${title} · ${graph} · ${t.title}`; }, [title, graph]);
  // Another page: what lay open above the one before is gone.
  useEffect(() => setPanels([]), [page, graph, params.entity, params.id, params.job]);
  return (
    <SessionContext.Provider value={session}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{t.skip}</a>
      <header class="top">
        <span class="brand" translate={false}>{t.title}</span>
        <Field label={t.graph}>
          {(id) => (
            <select id={id} value={graph} onChange={(event) => { location.hash = href(page, { graph: event.currentTarget.value }); }}>
              {!graphs.some((one) => one.graphId === graph) && graph && <option value={graph}>{graph}</option>}
              {graphs.map((one) => <option key={one.graphId} value={one.graphId}>{one.graphId}</option>)}
            </select>
          )}
        </Field>
        <nav aria-label={t.pages}>
          <ul>
            {PAGES.map((name) => (
              <li key={name}><a href={href(name, { graph })} aria-current={name === page ? "page" : undefined}>{titles()[name]}</a></li>
            ))}
          </ul>
        </nav>
        {controls}
      </header>
      <main id="main" tabIndex={-1}>
        <div class="row head"><h1>{title}</h1><button type="button" onClick={session.again}>{t.again}</button></div>
        {graph ? <PageOf key={graph} page={page} params={params} /> : <p>{t.noGraphs}</p>}
      </main>
      {panels.map((panel, at) => <PanelDialog key={at} panel={panel} onClose={() => setPanels((before) => before.slice(0, at))} />)}
    </SessionContext.Provider>
  );
}

function PageOf({ page, params }: { page: PageName; params: Record<string, string> }) {
  switch (page) {
    case "overview":
      return <Overview />;
    case "timeline":
      return <TimelinePage params={params} />;
    case "graph":
      return <GraphPage params={params} />;
    case "recall":
      return <RecallPage params={params} />;
    case "jobs":
      return <JobsPage params={params} />;
    case "ledger":
      return <LedgerPage />;
    case "contested":
      return <ContestedPage />;
  }
}
