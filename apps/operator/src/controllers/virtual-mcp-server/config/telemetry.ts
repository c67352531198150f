import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { compact } from '@thv/resources/schema/normalize'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { TelemetryConfig } from '@thv/runconfig/telemetry-config'
import type { Blocker, Contribution } from '../../../deployment/contribution.ts'
import { resolveTelemetry } from '../../../proxy/resolve/telemetry.ts'
import type { Lookup } from '../../../references/lookup.ts'

export interface Telemetry {
  /** Undefined: nothing is sent, and /metrics is on the main port only. */
  readonly document: TelemetryConfig | undefined
  readonly contribution: Contribution
  readonly blockers: readonly Blocker[]
}

interface Deps {
  readonly name: string
  readonly namespace: string
  readonly lookup: Pick<Lookup, 'secret' | 'configMap'>
  readonly now: number
}

/** Traces and metrics, by the same resolver as for proxies. Pure. */
export function telemetryOf({ config: { telemetry } }: CanonicalVirtualMCPServerSpec, deps: Deps): Telemetry {
  const { tracingEnabled, metricsEnabled, samplingRate, serviceVersion, caCertPath } = telemetry
  const resolved = resolveTelemetry({
    ...deps,
    sendsAudit: false,
    telemetry: {
      openTelemetry: compact({
        enabled: tracingEnabled || metricsEnabled,
        endpoint: telemetry.endpoint,
        serviceName: telemetry.serviceName,
        headers: Object.entries(telemetry.headers).map(([name, value]) => `${name}=${value}`),
        sensitiveHeaders: telemetry.sensitiveHeaders,
        insecure: telemetry.insecure,
        caBundleRef: telemetry.caBundleRef,
        resourceAttributes: telemetry.customAttributes,
        metrics: { enabled: metricsEnabled },
        tracing: { enabled: tracingEnabled, samplingRate },
        useLegacyAttributes: telemetry.useLegacyAttributes,
      }),
      prometheus: { enabled: telemetry.enablePrometheusMetricsPath },
    },
  })
  if (!resolved.ok) return { document: undefined, contribution: {}, blockers: resolved.blockers.map(inOwnWords) }
  const { runConfig, ...contribution } = resolved.contribution
  const config = runConfig?.telemetry_config
  if (config === undefined) return { document: undefined, contribution, blockers: [] }
  return {
    document: compact({
      ...config,
      service_version: serviceVersion,
      ca_cert_path: config.endpoint === undefined ? undefined : (config.ca_cert_path ?? caCertPath),
      prometheus_port: telemetry.enablePrometheusMetricsPath ? telemetry.prometheusPort : undefined,
      metrics_on_transport_port: telemetry.metricsOnTransportPort,
      environment_variables: telemetry.environmentVariables,
    }),
    contribution,
    blockers: [],
  }
}

const FIELD = /\bspec\.telemetry\.openTelemetry\b/g

function inOwnWords({ reason, message }: Blocker): Blocker {
  return {
    condition: Condition.Valid,
    reason: reason === WorkloadReason.InvalidSpec ? Reason.ValidationFailed : reason,
    message: message
      .replaceAll(FIELD, 'spec.config.telemetry')
      .replace('metrics.enabled or tracing.enabled', 'metricsEnabled or tracingEnabled'),
  }
}
