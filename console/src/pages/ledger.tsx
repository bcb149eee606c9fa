// Ledger: every movement of the tenant's credits, newest first.
import { Answered, Table, When } from "../parts.tsx";
import { href } from "../route.ts";
import { useAll, useAsked, useSession } from "../session.ts";
import { credits } from "../times.ts";
import { named, t } from "../words.ts";

const MOST = 1000;

export function LedgerPage() {
  const { graph } = useSession();
  const balance = useAsked("GetBalance", {});
  const found = useAll("ListLedgerEntries", {}, (answer) => answer.entries, MOST);
  return (
    <>
      <Answered of={balance}>
        {({ balance: { availableMicros, heldMicros } }) => (
          <dl class="figures">
            <div><dt>{t.available}</dt><dd>{credits(availableMicros)}</dd></div>
            <div><dt>{t.held}</dt><dd>{credits(heldMicros)}</dd></div>
          </dl>
        )}
      </Answered>
      <Answered of={found}>
        {(entries) => (
          <Table caption={t.ledger} heads={[t.when, t.kind, t.account, t.amount, t.balance, t.stage, t.reason, t.job]} numbers={[4, 5]}>
            {entries.map((one) => (
              <tr key={one.entryId}>
                <th scope="row"><When at={one.createdAt} /></th>
                <td>{named(one.kind)}</td>
                <td>{named(one.account)}</td>
                <td>{credits(one.amountMicros)}</td>
                <td>{credits(one.balanceAfterMicros)}</td>
                <td>{one.step}</td>
                <td>{one.reason}</td>
                <td>{one.jobId && <a href={href("jobs", { graph, job: one.jobId })}>{one.jobId.slice(0, 8)}<span class="unseen"> {t.job}</span></a>}</td>
              </tr>
            ))}
          </Table>
        )}
      </Answered>
      {found.more && <p>{t.cut}</p>}
    </>
  );
}
