// What the bridge answers: proto3 JSON, in which what is empty or zero is left out and an int64 is a string.

export type Instant = string;
export type Int64 = string;

export interface Stamp { revision?: Int64; time?: Instant }
export interface Entity {
  entityId: string;
  name: string;
  type?: string;
  aliases?: string[];
  createdAt?: Instant;
  mergedInto?: string;
  mergedEntityIds?: string[];
  statementCount?: Int64;
}
export interface Predicate { predicateId: string; name: string; cardinality?: string; aliases?: string[]; inverse?: string; declared?: boolean }
export interface Literal { stringValue?: string; numberValue?: number; boolValue?: boolean; timeValue?: Instant; timePrecision?: string }
export interface ObjectValue { entity?: Entity; literal?: Literal }
export interface Cause { kind?: string; recordId?: string; statementId?: string; episodeId?: string; origin?: string }
export interface Span {
  validAt?: Instant;
  validAtPrecision?: string;
  invalidAt?: Instant;
  invalidAtPrecision?: string;
  knownFrom?: Stamp;
  knownTo?: Stamp;
  startCause?: Cause;
  endCause?: Cause;
  startKind?: string;
  contested?: boolean;
}
export interface Statement {
  statementId: string;
  subject: Entity;
  predicate: Predicate;
  object: ObjectValue;
  fact: string;
  aspect?: string;
  createdAt?: Instant;
  expiredAt?: Instant;
  confidence?: number;
  contested?: boolean;
  sourceCount?: number;
  spans?: Span[];
  archived?: boolean;
}
export interface RecordSource {
  episodeId?: string;
  passageId?: string;
  quote?: string;
  attestedAt?: Instant;
  confidence?: number;
  recordedAt?: Stamp;
  revokedAt?: Stamp;
  origin?: string;
  reason?: string;
}
export interface Claim {
  claimId: string;
  start?: Instant;
  startKind?: string;
  startPrecision?: string;
  end?: Instant;
  endPrecision?: string;
  timeText?: string;
  source?: RecordSource;
}
export interface End { endId: string; endedAt?: Instant; endedAtPrecision?: string; source?: RecordSource }
export interface Denial { denialId: string; deniedFrom?: Instant; deniedUntil?: Instant; source?: RecordSource }
export interface Verdict { verdictId: string; statementId: string; otherStatementId: string; kind: string; decidedBy?: string; reason?: string; revokedAt?: Stamp }
export interface Timeline { entries?: TimelineEntry[]; subject: Entity; predicate: Predicate; contested?: boolean }
export interface TimelineEntry { statementId: string; object: ObjectValue; fact: string; span: Span; contested?: boolean; struck?: boolean; confidence?: number }

export interface Graph {
  graphId: string;
  counts?: Partial<Record<"entities" | "statements" | "episodes" | "claims" | "archived", Int64>>;
  revision?: Stamp;
  createdAt?: Instant;
}
export interface Balance { availableMicros?: Int64; heldMicros?: Int64; asOf?: Instant }
export interface LedgerEntry {
  entryId: string;
  createdAt?: Instant;
  kind?: string;
  account?: string;
  amountMicros?: Int64;
  balanceAfterMicros?: Int64;
  jobId?: string;
  reason?: string;
  step?: string;
}
export interface StageReceipt { stage?: string; model?: string; calls?: number; tokensIn?: Int64; tokensOut?: Int64; tokensCached?: Int64; durationMillis?: Int64 }
export interface Status { message?: string }
export interface Chunk { index?: number; episodeId?: string; stage?: string; nothingReason?: string; error?: Status; tokenCount?: number; dropped?: Record<string, number> }
export interface Job {
  jobId: string;
  graphId?: string;
  kind?: string;
  state?: string;
  createdAt?: Instant;
  startedAt?: Instant;
  finishedAt?: Instant;
  chunks?: Chunk[];
  credits?: { heldMicros?: Int64; spentMicros?: Int64; refundedMicros?: Int64; priceVersion?: string };
  receipt?: { engine?: string; stages?: StageReceipt[] };
  result?: { counts?: Record<string, number> };
  error?: Status;
  revision?: Int64;
}
export interface Passage { passageId: string; episodeId?: string; speaker?: string; text?: string; referenceTime?: Instant }
export interface Episode { episodeId: string; title?: string; source?: string; sessionId?: string; documentId?: string; documentVersion?: number; referenceTime?: Instant }

export interface FoundBy { leg?: string; target?: string; rank?: number; score?: number }
export interface Evidence { passageId?: string; graphId?: string; episodeId?: string; quote?: string }
export interface PathStep { fromEntity?: Entity; toEntity?: Entity; statementId?: string; reverse?: boolean }
export interface RecalledFact {
  statement: Statement;
  score?: number;
  current?: boolean;
  evidence?: string[];
  path?: PathStep[];
  foundBy?: FoundBy[];
  inContext?: boolean;
}
export interface RecalledPassage { passage: Passage; score?: number; evidence?: string; foundBy?: FoundBy[]; inContext?: boolean }
export interface RecalledVoice { voiceAspect: { text?: string; kind?: string }; score?: number; current?: boolean; evidence?: string[]; foundBy?: FoundBy[]; inContext?: boolean }
export interface Recalled {
  facts?: RecalledFact[];
  passages?: RecalledPassage[];
  voice?: RecalledVoice[];
  context?: string;
  evidence?: Record<string, Evidence>;
  degraded?: { component?: string }[];
  tokensUsed?: number;
  abstentionScore?: number;
  plan?: { intent?: string; seeds?: Entity[]; dates?: { start?: Instant; end?: Instant }[] };
  engine?: string;
}

interface Paged { nextPageToken?: string }

/** The answer of each call that the bridge carries. */
export interface Answers {
  ListGraphs: Paged & { graphs?: Graph[] };
  GetGraph: { graph: Graph };
  ListPredicates: Paged & { predicates?: Predicate[] };
  ListStatements: Paged & { statements?: Statement[]; revision?: Int64 };
  GetStatement: {
    statement: Statement;
    pastSpans?: Span[];
    claims?: Claim[];
    ends?: End[];
    denials?: Denial[];
    verdicts?: Verdict[];
    dependentStatementIds?: string[];
  };
  GetTimeline: Paged & Timeline;
  ListEntities: Paged & { entities?: Entity[] };
  GetEntity: { entity: Entity };
  GetEpisode: { episode: Episode; text?: string; passages?: Passage[] };
  Recall: Recalled;
  GetSubgraph: { nodes?: { entity: Entity; distance?: number }[]; edges?: { statement: Statement; distance?: number }[]; truncated?: boolean; revision?: Int64 };
  ListJobs: Paged & { jobs?: Job[] };
  GetJob: { job: Job };
  GetBalance: { balance: Balance };
  ListLedgerEntries: Paged & { entries?: LedgerEntry[] };
  EndStatement: object;
  DenyStatement: object;
  RestoreStatement: object;
  MergeEntities: object;
  SplitEntity: object;
}
export type CallName = keyof Answers;
export type Change = "EndStatement" | "DenyStatement" | "RestoreStatement" | "MergeEntities" | "SplitEntity";
