import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalAuditConfig } from '@thv/resources/shared/audit-config'
import type { CanonicalTelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { AuditConfig } from '@thv/runconfig/audit-config'
import { blocked } from '../../deployment/contribution.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'

const MIB = 1024 * 1024

export interface AuditArgs {
  readonly audit: CanonicalAuditConfig
  readonly telemetry: CanonicalTelemetryConfig
}

/** Audit events of the proxy, on its standard output. */
export function resolveAudit({ audit, telemetry }: AuditArgs): Resolved {
  if (!audit.enabled) return nothing
  const { openTelemetry: otel } = telemetry
  if (audit.otlp && (!otel.enabled || otel.endpoint === undefined))
    return blocked({
      condition: WorkloadCondition.ConfigurationValid,
      reason: WorkloadReason.InvalidSpec,
      message: 'spec.audit.otlp needs a collector: set spec.telemetry.openTelemetry.enabled and endpoint',
    })
  const config: AuditConfig = compact({
    enabled: true,
    component: audit.component,
    event_types: audit.eventTypes,
    exclude_event_types: audit.excludeEventTypes,
    include_request_data: audit.includeRequestData,
    include_response_data: audit.includeResponseData,
    detect_application_errors: audit.detectApplicationErrors,
    max_data_size: audit.maxDataSize,
    max_delegation_depth: audit.maxDelegationDepth,
    max_file_size: 100 * MIB,
    max_files: 5,
    otlp: audit.otlp,
  })
  return contributes({ runConfig: { audit_config: config } })
}
