import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalCABundleRef } from '@thv/resources/shared/ca-bundle-ref'
import type { CanonicalTelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { TelemetryConfig } from '@thv/runconfig/telemetry-config'
import { blocked, secretVariable } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'
import { contributes, nothing, type Resolved } from '../contribution.ts'
import { type MountedCaBundle, mountCaBundle } from './ca-bundle.ts'

export interface TelemetryArgs {
  readonly telemetry: CanonicalTelemetryConfig
  /** Audit events go to the collector too. */
  readonly sendsAudit: boolean
  /** Of the workload. */
  readonly name: string
  readonly namespace: string
  readonly lookup: Pick<Lookup, 'configMap' | 'secret'>
  readonly now?: number
}

export const RESOURCE_ATTRIBUTES_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES'

/** Traces and metrics of the proxy. */
export function resolveTelemetry({ telemetry, sendsAudit, name, namespace, lookup, now }: TelemetryArgs): Resolved {
  const { openTelemetry: otel, prometheus } = telemetry
  if (!otel.enabled && !prometheus.enabled) return nothing

  const problems: string[] = []
  const endpoint = otel.enabled && otel.endpoint !== undefined ? hostAndPort(otel.endpoint, problems) : undefined
  const headers = otel.enabled ? headersOf(otel.headers, problems) : {}
  const sends = otel.enabled && (otel.metrics.enabled || otel.tracing.enabled)
  if (endpoint !== undefined && !sends && !sendsAudit)
    problems.push(`${FIELD}.endpoint is of no use without anything to send: set metrics.enabled or tracing.enabled to true`)
  if (otel.endpoint === undefined && sends) problems.push(`${FIELD}.endpoint must be set: the host and port of the collector`)
  const sensitive = otel.enabled ? otel.sensitiveHeaders : []
  problems.push(...sensitiveProblems(sensitive, headers, lookup))
  if (otel.enabled && otel.insecure && otel.caBundleRef !== undefined)
    problems.push(`${FIELD}.caBundleRef and insecure must not both be set: without TLS there is no certificate to check`)
  if (problems.length > 0) {
    const { ConfigurationValid: condition } = WorkloadCondition
    return blocked(...problems.map((message) => ({ condition, reason: WorkloadReason.InvalidSpec, message })))
  }

  const bundle = otel.enabled && otel.caBundleRef !== undefined ? mountBundle(otel.caBundleRef, lookup, now) : undefined
  if (bundle?.ok === false) return blocked(bundle.blocker)
  const file = bundle?.file
  const serviceName = otel.serviceName ?? name
  const config: TelemetryConfig = compact({
    endpoint,
    service_name: serviceName,
    tracing_enabled: otel.enabled && otel.tracing.enabled,
    metrics_enabled: otel.enabled && otel.metrics.enabled,
    sampling_rate: otel.tracing.samplingRate,
    headers,
    sensitive_headers: sensitive.map(({ name: header }) => header),
    insecure: otel.enabled && otel.insecure,
    enable_prometheus_metrics_path: prometheus.enabled,
    metrics_on_transport_port: true,
    environment_variables: [],
    custom_attributes: otel.enabled ? otel.resourceAttributes : {},
    use_legacy_attributes: otel.useLegacyAttributes,
    ca_cert_path: file?.path,
  })
  const attributes = `service.name=${encodeURIComponent(serviceName)},service.namespace=${encodeURIComponent(namespace)}`
  return contributes({
    runConfig: { telemetry_config: config },
    env: [
      ...(otel.enabled ? [{ name: RESOURCE_ATTRIBUTES_VARIABLE, value: attributes }] : []),
      ...sensitive.map(({ name: header, secretKeyRef }) => secretVariable(headerVariable(header), secretKeyRef)),
      ...(file === undefined ? [] : [{ name: CA_VARIABLE, value: file.id }]),
    ],
    ...(sensitive.length > 0 && { secrets: [...new Set(sensitive.map(({ secretKeyRef }) => secretKeyRef.name))].sort() }),
    ...(file !== undefined && { volumes: file.volumes, volumeMounts: file.volumeMounts }),
  })
}

const FIELD = 'spec.telemetry.openTelemetry'
/** Its change replaces the pods. */
const CA_VARIABLE = 'THV_OTEL_CA_HASH'
const CA_FOLDER = '/etc/toolhive/otel-ca'

function mountBundle(ref: CanonicalCABundleRef, lookup: TelemetryArgs['lookup'], now: number | undefined): MountedCaBundle {
  return mountCaBundle({ ref, field: `${FIELD}.caBundleRef`, volumeName: 'otel-ca', folder: CA_FOLDER, lookup, now })
}

/** The variable that holds the value of a sensitive header. */
function headerVariable(name: string): string {
  return `TOOLHIVE_OTEL_HEADER_${name.toUpperCase().replaceAll('-', '_')}`
}

type SensitiveHeaders = CanonicalTelemetryConfig['openTelemetry']['sensitiveHeaders']

function sensitiveProblems(sensitive: SensitiveHeaders, plain: Record<string, string>, lookup: TelemetryArgs['lookup']): string[] {
  const taken = new Set(Object.keys(plain).map((name) => headerVariable(name)))
  return sensitive.flatMap(({ name, secretKeyRef }) => {
    const field = `${FIELD}.sensitiveHeaders[${name}]`
    const variable = headerVariable(name)
    const isTaken = taken.has(variable)
    taken.add(variable)
    if (isTaken) return [`${field} is set twice: a header may be in headers or in sensitiveHeaders, once`]
    return missingSecretKey(lookup, secretKeyRef, field) ?? []
  })
}

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
