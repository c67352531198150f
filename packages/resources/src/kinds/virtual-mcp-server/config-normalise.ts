import { formatDuration, tryParseDuration } from '@thv/kernel/duration'
import { compact, type ProblemList } from '../../schema/normalize.ts'
import { type CanonicalCABundleRef, normaliseCaBundleRef } from '../../shared/ca-bundle-ref.ts'
import { type CanonicalCompositeTool, normaliseCompositeTool } from '../../shared/composite/composite-tool-normalise.ts'
import { type CanonicalRateLimiting, normaliseRateLimiting } from '../../shared/rate-limiting.ts'
import { DEFAULT_SAMPLING_RATE } from '../../shared/telemetry-config.ts'
import { type Aggregation, DEFAULT_PREFIX_FORMAT, DEFAULT_SELECTOR_ARGUMENT } from './aggregation.ts'
import type { Config } from './config.ts'
import type { FileAudit, FileTelemetry } from './observability.ts'
import type { Operational } from './operational.ts'
import type { Optimizer } from './optimizer.ts'

/** `spec.config` without what has its canonical place elsewhere in the spec: name, group, incomingAuth, references and headers. */
export interface CanonicalConfig {
  aggregation: CanonicalAggregation
  compositeTools: CanonicalCompositeTool[]
  operational: CanonicalOperational
  tokenCache: Required<NonNullable<Config['tokenCache']>>
  workflows: Required<NonNullable<Config['workflows']>>
  bridge: Required<NonNullable<Config['bridge']>>
  rateLimiting?: CanonicalRateLimiting
  optimizer?: CanonicalOptimizer
  audit: CanonicalAudit
  telemetry: CanonicalTelemetry
  metadata: Record<string, string>
}

type Filled<T, K extends keyof T> = Omit<T, K> & Required<Pick<T, K>>
type WorkloadTools = NonNullable<Aggregation['tools']>[number]
type FailureHandling = NonNullable<Operational['failureHandling']>

export interface CanonicalAggregation {
  conflictResolution: NonNullable<Aggregation['conflictResolution']>
  conflictResolutionConfig: { prefixFormat: string; priorityOrder: string[]; winners: Record<string, string>; selectorArgument: string }
  defaultToolVisibility: 'allow' | 'deny'
  excludeAllTools: boolean
  tools: CanonicalWorkloadTools[]
}

/** An empty `filter` is none. */
export type CanonicalWorkloadTools = Filled<WorkloadTools, 'filter' | 'exclude' | 'excludeAll' | 'overrides'>

export interface CanonicalOperational {
  logLevel?: 'debug'
  timeouts: { default: string; perWorkload: Record<string, string>; perTool: Record<string, string> }
  failureHandling: Required<Omit<FailureHandling, 'circuitBreaker'>> & {
    circuitBreaker: Required<NonNullable<FailureHandling['circuitBreaker']>>
  }
  retry: Required<Omit<NonNullable<Operational['retry']>, 'true'>>
  toolResults?: Required<NonNullable<Operational['toolResults']>>
}

export type CanonicalOptimizer = Filled<
  Optimizer,
  | 'embeddingServiceTimeout'
  | 'embeddingProvider'
  | 'alwaysListed'
  | 'maxToolsToReturn'
  | 'hybridSearchSemanticRatio'
  | 'semanticDistanceThreshold'
>

export type CanonicalAudit = Filled<
  FileAudit,
  | 'enabled'
  | 'eventTypes'
  | 'excludeEventTypes'
  | 'includeRequestData'
  | 'includeResponseData'
  | 'detectApplicationErrors'
  | 'maxDataSize'
  | 'maxDelegationDepth'
>

export type CanonicalTelemetry = Filled<
  Omit<FileTelemetry, 'caBundleRef'>,
  | 'tracingEnabled'
  | 'metricsEnabled'
  | 'samplingRate'
  | 'headers'
  | 'sensitiveHeaders'
  | 'insecure'
  | 'enablePrometheusMetricsPath'
  | 'prometheusPort'
  | 'metricsOnTransportPort'
  | 'environmentVariables'
  | 'customAttributes'
  | 'useLegacyAttributes'
> & { caBundleRef?: CanonicalCABundleRef }

export function normaliseConfig(problems: ProblemList, field: string, config: Config): CanonicalConfig {
  return compact({
    aggregation: canonicalAggregation(config.aggregation ?? {}),
    compositeTools: (config.compositeTools ?? []).map((tool, index) =>
      normaliseCompositeTool(problems, `${field}.compositeTools[${index}]`, tool),
    ),
    operational: canonicalOperational(config.operational ?? {}),
    workflows: { authorizeSteps: false, maxParallelSteps: 10, ...config.workflows },
    bridge: { parkedCalls: true, ...config.bridge },
    tokenCache: { enabled: true, maxEntries: 10_000, ttlOffset: '60s', ...config.tokenCache },
    rateLimiting: normaliseRateLimiting(config.rateLimiting),
    optimizer: config.optimizer && { ...optimizerDefaults(), ...config.optimizer },
    audit: { ...auditDefaults(), ...config.audit },
    telemetry: canonicalTelemetry(problems, `${field}.telemetry`, config.telemetry ?? {}),
    metadata: config.metadata ?? {},
  })
}

function canonicalAggregation(aggregation: Aggregation): CanonicalAggregation {
  const settings = aggregation.conflictResolutionConfig ?? {}
  const { prefixFormat = DEFAULT_PREFIX_FORMAT, priorityOrder = [], winners = {}, selectorArgument = DEFAULT_SELECTOR_ARGUMENT } = settings
  return {
    conflictResolution: aggregation.conflictResolution ?? 'prefix',
    conflictResolutionConfig: { prefixFormat, priorityOrder, winners, selectorArgument },
    defaultToolVisibility: aggregation.defaultToolVisibility ?? 'allow',
    excludeAllTools: aggregation.excludeAllTools ?? false,
    tools: (aggregation.tools ?? []).map((tools) => ({ filter: [], exclude: [], excludeAll: false, overrides: {}, ...tools })),
  }
}

function canonicalTelemetry(problems: ProblemList, field: string, { caBundleRef, ...telemetry }: FileTelemetry): CanonicalTelemetry {
  return compact({
    ...telemetryDefaults(),
    ...telemetry,
    caBundleRef: normaliseCaBundleRef(problems, `${field}.caBundleRef`, caBundleRef),
  })
}

function canonicalOperational(operational: Operational): CanonicalOperational {
  const { circuitBreaker, ...handling } = operational.failureHandling ?? {}
  const healthCheckInterval = handling.healthCheckInterval ?? '30s'
  const { attempts = 3, backoff = '250ms', on = ['connect' as const] } = operational.retry ?? {}
  return compact({
    logLevel: operational.logLevel,
    timeouts: { default: '30s', perWorkload: {}, perTool: {}, ...operational.timeouts },
    failureHandling: {
      healthCheckTimeout: defaultHealthCheckTimeout(healthCheckInterval),
      unhealthyThreshold: 3,
      statusReportingInterval: '30s',
      partialFailureMode: 'best_effort' as const,
      ...handling,
      healthCheckInterval,
      circuitBreaker: { enabled: false, failureThreshold: 5, timeout: '60s', ...circuitBreaker },
    },
    retry: { attempts, backoff, on },
    toolResults: operational.toolResults && { onExceed: 'error' as const, ...operational.toolResults },
  })
}

const USUAL_HEALTH_CHECK_TIMEOUT_MS = 10_000

/** A check must be over before the next one is due. */
function defaultHealthCheckTimeout(interval: string): string {
  const intervalMs = tryParseDuration(interval) ?? Number.POSITIVE_INFINITY
  return formatDuration(intervalMs > USUAL_HEALTH_CHECK_TIMEOUT_MS ? USUAL_HEALTH_CHECK_TIMEOUT_MS : intervalMs / 2)
}

const optimizerDefaults = () => ({
  embeddingServiceTimeout: '30s',
  embeddingProvider: 'tei' as const,
  alwaysListed: [],
  maxToolsToReturn: 8,
  hybridSearchSemanticRatio: '0.5',
  semanticDistanceThreshold: '1.0',
})

const auditDefaults = () => ({
  enabled: false,
  eventTypes: [],
  excludeEventTypes: [],
  includeRequestData: false,
  includeResponseData: false,
  detectApplicationErrors: true,
  maxDataSize: 1024,
  maxDelegationDepth: 10,
})

const telemetryDefaults = () => ({
  tracingEnabled: false,
  metricsEnabled: false,
  samplingRate: DEFAULT_SAMPLING_RATE,
  headers: {},
  sensitiveHeaders: [],
  insecure: false,
  enablePrometheusMetricsPath: false,
  prometheusPort: 9464,
  metricsOnTransportPort: true,
  environmentVariables: [],
  customAttributes: {},
  useLegacyAttributes: true,
})
