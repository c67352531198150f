import type {
  CanonicalAudit,
  CanonicalConfig,
  CanonicalOperational,
  CanonicalOptimizer,
} from '@thv/resources/kinds/virtual-mcp-server/config-normalise'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { compact } from '@thv/resources/schema/normalize'
import type { AuditConfig } from '@thv/runconfig/audit-config'
import type { OperationalConfig } from '@thv/vmcpconfig/vmcp-config'
import type { VmcpDocument } from '@thv/vmcpconfig/write-vmcp-config'

/** The API server fills this in wherever its block is written, so it asks for nothing. */
const DEFAULT_REPORTING_INTERVAL = '30s'

export function operationalOf(operational: CanonicalOperational): Omit<OperationalConfig, 'timeouts'> & {
  readonly timeouts: Partial<OperationalConfig['timeouts']>
} {
  const { logLevel, timeouts, failureHandling, retry, toolResults } = operational
  const { statusReportingInterval: interval, ...handling } = failureHandling
  return compact({
    logLevel,
    timeouts,
    failureHandling: compact({
      ...handling,
      statusReportingInterval: interval === DEFAULT_REPORTING_INTERVAL ? undefined : interval,
    }),
    retry,
    toolResults,
  })
}

const MIB = 1024 * 1024

export function auditOf({ enabled, ...audit }: CanonicalAudit): AuditConfig | undefined {
  if (!enabled) return undefined
  return compact({
    enabled: true,
    component: audit.component,
    event_types: audit.eventTypes as AuditConfig['event_types'],
    exclude_event_types: audit.excludeEventTypes as AuditConfig['exclude_event_types'],
    include_request_data: audit.includeRequestData,
    include_response_data: audit.includeResponseData,
    detect_application_errors: audit.detectApplicationErrors,
    max_data_size: audit.maxDataSize,
    max_delegation_depth: audit.maxDelegationDepth,
    log_file: audit.logFile,
    max_file_size: 100 * MIB,
    max_files: 5,
    otlp: false,
  })
}

type Given = NonNullable<VirtualMCPServer['spec']['config']>

/** Blocks that are left to the reader's defaults unless they are written. */
export function optionalBlocks(
  config: CanonicalConfig,
  given: Given,
): Pick<VmcpDocument, 'optimizer' | 'rateLimiting' | 'tokenCache' | 'workflows' | 'bridge'> {
  const { optimizer, rateLimiting, tokenCache, workflows, bridge } = config
  return compact({
    optimizer: optimizer && toolSearchOf(optimizer),
    rateLimiting: rateLimiting && { ...rateLimiting },
    tokenCache: given.tokenCache && tokenCache,
    workflows: given.workflows && workflows,
    bridge: given.bridge && bridge,
  })
}

/** Settings of the embedding service have defaults, so they ask for nothing where there is no service. */
function toolSearchOf({
  maxToolsToReturn,
  alwaysListed,
  description,
  ...ofService
}: CanonicalOptimizer): NonNullable<VmcpDocument['optimizer']> {
  return compact({
    maxToolsToReturn,
    alwaysListed: alwaysListed.length > 0 ? alwaysListed : undefined,
    description,
    ...(ofService.embeddingService !== undefined && ofService),
  })
}
