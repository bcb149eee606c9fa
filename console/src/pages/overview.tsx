// Overview: how much a graph holds, what its jobs do, what credits there are.
import { Answered, EntityLink, Table, When } from "../parts.tsx";
import { useAsked, useSession } from "../session.ts";
import { credits } from "../times.ts";
import type { Graph } from "../types.ts";
import { named, t } from "../words.ts";
import { JobsTable } from "./jobs.tsx";

export function Overview() {
  const { graph } = useSession();
  const read = useAsked("GetGraph", { graphId: graph });
  const balance = useAsked("GetBalance", {});
  const jobs = useAsked("ListJobs", { graphId: graph, pageSize: 5 });
  const entities = useAsked("ListEntities", { graphId: graph, pageSize: 200 });
  const predicates = useAsked("ListPredicates", { graphId: graph, pageSize: 200 });
  return (
    <>
      <Answered of={read}>{(answer) => <Counts graph={answer.graph} />}</Answered>
      <Answered of={balance}>
        {({ balance: { availableMicros, heldMicros } }) => (
          <dl class="figures">
            <div><dt>{t.credits} · {t.available}</dt><dd>{credits(availableMicros)}</dd></div>
            <div><dt>{t.credits} · {t.held}</dt><dd>{credits(heldMicros)}</dd></div>
          </dl>
        )}
      </Answered>
      <Answered of={jobs}>{(answer) => <JobsTable caption={t.latestJobs} jobs={answer.jobs ?? []} />}</Answered>
      <h2>{t.entities}</h2>
      <Answered of={entities}>
        {(answer) => (
          <ul class="chips">
            {answer.entities?.map((one) => <li key={one.entityId}><EntityLink entity={one} /> <small>{one.statementCount ?? 0}</small></li>)}
          </ul>
        )}
      </Answered>
      <Answered of={predicates}>
        {({ predicates: all = [] }) => (
          <details>
            <summary>{t.predicates} ({all.length})</summary>
            <Table caption={t.predicates} heads={[t.predicate, t.cardinality, t.aliases, t.source]}>
              {all.map((one) => (
                <tr key={one.name}>
                  <th scope="row">{one.name}</th>
                  <td>{named(one.cardinality)}</td>
                  <td>{one.aliases?.join(", ")}</td>
                  <td>{one.declared ? t.declared : "–"}</td>
                </tr>
              ))}
            </Table>
          </details>
        )}
      </Answered>
    </>
  );
}

function Counts({ graph }: { graph: Graph }) {
  const names = ["statements", "entities", "episodes", "claims", "archived"] as const;
  return (
    <dl class="figures">
      {names.map((name) => <div key={name}><dt>{t[name]}</dt><dd>{Number(graph.counts?.[name] ?? 0).toLocaleString("en")}</dd></div>)}
      <div>
        <dt>{t.revision}</dt>
        <dd>{graph.revision?.revision ?? 0} <small><When at={graph.revision?.time} /></small></dd>
      </div>
    </dl>
  );
}
