import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalTelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { TelemetryConfig } from '@thv/runconfig/telemetry-config'
import { blocked } from '../../deployment/contribution.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'

export interface TelemetryArgs {
  readonly telemetry: CanonicalTelemetryConfig
  /** Of the workload. */
  readonly name: string
  readonly namespace: string
}

export const RESOURCE_ATTRIBUTES_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES'

/** Traces and metrics of the proxy. */
export function resolveTelemetry({ telemetry, name, namespace }: TelemetryArgs): Resolved {
  const { openTelemetry: otel, prometheus } = telemetry
  if (!otel.enabled && !prometheus.enabled) return nothing

  const problems: string[] = []
  const endpoint = otel.enabled && otel.endpoint !== undefined ? hostAndPort(otel.endpoint, problems) : undefined
  const headers = otel.enabled ? headersOf(otel.headers, problems) : {}
  if (endpoint !== undefined && !otel.metrics.enabled && !otel.tracing.enabled)
    problems.push(`${FIELD}.endpoint is of no use without anything to send: set metrics.enabled or tracing.enabled to true`)
  if (problems.length > 0) {
    const { ConfigurationValid: condition } = WorkloadCondition
    return blocked(...problems.map((message) => ({ condition, reason: WorkloadReason.InvalidSpec, message })))
  }

  const serviceName = otel.serviceName ?? name
  const config: TelemetryConfig = compact({
    endpoint,
    service_name: serviceName,
    tracing_enabled: otel.enabled && otel.tracing.enabled,
    metrics_enabled: otel.enabled && otel.metrics.enabled,
    sampling_rate: otel.tracing.samplingRate,
    headers,
    insecure: otel.enabled && otel.insecure,
    enable_prometheus_metrics_path: prometheus.enabled,
    metrics_on_transport_port: true,
    environment_variables: [],
    custom_attributes: {},
    use_legacy_attributes: otel.useLegacyAttributes,
  })
  const attributes = `service.name=${encodeURIComponent(serviceName)},service.namespace=${encodeURIComponent(namespace)}`
  return contributes({
    runConfig: { telemetry_config: config },
    env: otel.enabled ? [{ name: RESOURCE_ATTRIBUTES_VARIABLE, value: attributes }] : [],
  })
}

const FIELD = 'spec.telemetry.openTelemetry'

/** A scheme says nothing here: whether TLS is used is what `insecure` says. */
function hostAndPort(endpoint: string, problems: string[]): string | undefined {
  const bare = endpoint.replace(/^https?:\/\//i, '').replace(/\/+$/, '')
  const url = URL.parse(`http://${bare}`)
  if (url === null || url.hostname === '' || /\s/.test(bare) || bare.includes('://'))
    problems.push(`${FIELD}.endpoint must be the host and port of the collector, such as otel-collector.monitoring.svc:4318`)
  else if (url.username !== '' || url.password !== '')
    problems.push(`${FIELD}.endpoint must not carry a user name or password: this object and the RunConfig are no place for secrets`)
  else return bare
  return undefined
}

function headersOf(lines: readonly string[], problems: string[]): Record<string, string> {
  const headers = new Map<string, string>()
  const taken = new Set<string>()
  for (const [index, line] of lines.entries()) {
    const at = line.indexOf('=')
    const name = line.slice(0, at)
    const value = line.slice(at + 1)
    const field = `${FIELD}.headers[${index}]`
    if (at < 1 || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[\r\n\0]/.test(value))
      problems.push(`${field} must be NAME=VALUE with the name of an HTTP header and a value of one line`)
    else if (taken.has(name.toLowerCase())) problems.push(`${field} sets ${name} a second time: keep one of them`)
    else headers.set(name, value)
    taken.add(name.toLowerCase())
  }
  return Object.fromEntries(headers)
}
