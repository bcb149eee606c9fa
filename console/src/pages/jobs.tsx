// Jobs: what was taken in, how far it has come, what it cost and what was spent on models for it.
import { Answered, Table, ToEpisode, When } from "../parts.tsx";
import { href } from "../route.ts";
import { useAll, useAsked, useSession } from "../session.ts";
import { credits } from "../times.ts";
import type { Job } from "../types.ts";
import { named, t } from "../words.ts";

const MOST = 1000;

export function JobsPage({ params }: { params: Record<string, string> }) {
  const { graph } = useSession();
  const found = useAll("ListJobs", { graphId: graph }, (answer) => answer.jobs, MOST);
  return (
    <>
      {params.job && <OneJob id={params.job} />}
      <Answered of={found}>{(jobs) => <JobsTable caption={t.jobs} jobs={jobs} chosen={params.job} />}</Answered>
      {found.more && <p>{t.cut}</p>}
    </>
  );
}

export function JobsTable({ caption, jobs, chosen }: { caption: string; jobs: Job[]; chosen?: string | undefined }) {
  const { graph } = useSession();
  if (!jobs.length) return <p>{t.nothing}</p>;
  return (
    <Table caption={caption} heads={[t.accepted, t.kind, t.state, t.spent, t.refunded, t.finished]} numbers={[4, 5]}>
      {jobs.map((job) => (
        <tr key={job.jobId} aria-current={job.jobId === chosen ? "true" : undefined}>
          <th scope="row"><a href={href("jobs", { graph, job: job.jobId })}><When at={job.createdAt} /></a></th>
          <td>{named(job.kind)}</td>
          <td class={job.state}>{named(job.state)}</td>
          <td>{credits(job.credits?.spentMicros)}</td>
          <td>{credits(job.credits?.refundedMicros)}</td>
          <td><When at={job.finishedAt} /></td>
        </tr>
      ))}
    </Table>
  );
}

function OneJob({ id }: { id: string }) {
  const read = useAsked("GetJob", { jobId: id });
  return (
    <Answered of={read}>
      {({ job }) => (
        <section class="job" aria-label={t.job}>
          <h2>{named(job.kind)} · {named(job.state)}</h2>
          <p class="faint"><code>{job.jobId}</code> · {t.revisionAt(job.revision ?? "0")} · {t.spent} {credits(job.credits?.spentMicros)} · {t.refunded} {credits(job.credits?.refundedMicros)} · {t.held} {credits(job.credits?.heldMicros)}</p>
          {job.error?.message && <p class="failure">{job.error.message}</p>}
          <Receipt job={job} />
          <Chunks job={job} />
          <Counts job={job} />
        </section>
      )}
    </Answered>
  );
}

function Receipt({ job: { receipt } }: { job: Job }) {
  if (!receipt?.stages?.length) return <p class="faint">{t.receipt}: {t.engine} {receipt?.engine || "–"}</p>;
  return (
    <Table caption={`${t.receipt} · ${t.engine} ${receipt.engine}`} heads={[t.stage, t.model, t.calls, t.tokensIn, t.tokensOut, t.tokensCached, t.millis]} numbers={[3, 4, 5, 6, 7]}>
      {receipt.stages.map((one, at) => (
        <tr key={at}>
          <th scope="row">{one.stage}</th>
          <td>{one.model || "–"}</td>
          <td>{one.calls ?? 0}</td>
          <td>{one.tokensIn ?? 0}</td>
          <td>{one.tokensOut ?? 0}</td>
          <td>{one.tokensCached ?? 0}</td>
          <td>{one.durationMillis ?? 0}</td>
        </tr>
      ))}
    </Table>
  );
}

function Chunks({ job: { chunks } }: { job: Job }) {
  if (!chunks?.length) return null;
  return (
    <Table caption={t.chunks} heads={[t.chunk, t.stage, t.tokens, t.reason, t.evidence]} numbers={[3]}>
      {chunks.map((one) => (
        <tr key={one.index ?? 0}>
          <th scope="row">{(one.index ?? 0) + 1}</th>
          <td>{named(one.stage)}</td>
          <td>{one.tokenCount ?? 0}</td>
          <td>{[named(one.nothingReason), one.error?.message, ...Object.entries(one.dropped ?? {}).map(([why, n]) => `${named(why)} ${n}`)].filter(Boolean).join(", ")}</td>
          <td>{one.episodeId && <ToEpisode id={one.episodeId} />}</td>
        </tr>
      ))}
    </Table>
  );
}

function Counts({ job: { result } }: { job: Job }) {
  const counts = Object.entries(result?.counts ?? {});
  if (!counts.length) return null;
  const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return (
    <>
      <h3>{t.changed}</h3>
      <dl class="figures small">{counts.map(([name, value]) => <div key={name}><dt>{words(name)}</dt><dd>{value}</dd></div>)}</dl>
    </>
  );
}
