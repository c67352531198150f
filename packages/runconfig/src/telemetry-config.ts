import type { FieldTable } from './field.ts'
import { flag, integer, listOf, mapOf, text } from './value-readers.ts'

export interface TelemetryConfig {
  readonly endpoint?: string
  readonly service_name?: string
  readonly service_version?: string
  readonly tracing_enabled: boolean
  readonly metrics_enabled: boolean
  readonly sampling_rate: string
  readonly headers: Readonly<Record<string, string>>
  readonly sensitive_headers: readonly string[]
  readonly insecure: boolean
  readonly enable_prometheus_metrics_path: boolean
  readonly prometheus_port?: number
  readonly metrics_on_transport_port: boolean
  readonly environment_variables: readonly string[]
  readonly custom_attributes: Readonly<Record<string, string>>
  readonly use_legacy_attributes: boolean
  readonly ca_cert_path?: string
}

const endpoint = text({ like: { test: isEndpoint, words: 'a host and port such as otel-collector:4318, without a scheme' } })

function isEndpoint(value: string): boolean {
  const url = URL.parse(`http://${value}`)
  return (
    url !== null &&
    !value.includes('://') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '' &&
    url.hostname !== ''
  )
}

const rate = text({
  like: { test: (value) => /^(0(\.\d+)?|1(\.0+)?)$/.test(value), words: 'a share from 0 to 1 as a text, such as "0.05"' },
})

export const TELEMETRY_FIELDS: FieldTable<TelemetryConfig> = {
  endpoint: { reader: endpoint, doc: 'Host and port of an OTLP/HTTP collector, and a path before `/v1/traces` if there is one.' },
  service_name: { reader: text(), doc: 'Name of the service; `thv-NAME` without it.' },
  service_version: { reader: text(), doc: 'Its version.' },
  tracing_enabled: { reader: flag, default: false, doc: 'Whether traces are sent to the endpoint.' },
  metrics_enabled: { reader: flag, default: false, doc: 'Whether metrics are sent to the endpoint.' },
  sampling_rate: {
    reader: rate,
    default: '0.05',
    doc: 'Share of the requests that are traced. A client that does not sample its trace lowers it, never raises it, unless `trust_proxy_headers` is set.',
  },
  headers: { reader: mapOf(text({ allowEmpty: true })), default: {}, doc: 'Headers of requests to the endpoint.' },
  sensitive_headers: {
    reader: listOf(text()),
    default: [],
    doc: 'Names of further headers. The value of `X-Api-Key` is in the variable `TOOLHIVE_OTEL_HEADER_X_API_KEY`.',
  },
  insecure: { reader: flag, default: false, doc: 'Whether the endpoint is called without TLS.' },
  enable_prometheus_metrics_path: {
    reader: flag,
    default: false,
    doc: 'Asks for `/metrics` on the port of the proxy. On a port of its own it is served in any case.',
  },
  prometheus_port: {
    reader: integer({ min: 1, max: 65_535 }),
    defaultText: '`9464`',
    doc: 'The port that serves `/metrics`. Any free one when it is taken; the log says which.',
  },
  metrics_on_transport_port: {
    reader: flag,
    default: true,
    doc: 'Whether `enable_prometheus_metrics_path` holds for the port of the proxy.',
  },
  environment_variables: { reader: listOf(text()), default: [], doc: 'Variables that become attributes of spans.' },
  custom_attributes: { reader: mapOf(text({ allowEmpty: true })), default: {}, doc: 'Further attributes of all spans and metrics.' },
  use_legacy_attributes: { reader: flag, default: true, doc: 'Whether spans carry the older attribute names too.' },
  ca_cert_path: { reader: text(), doc: 'File with further certificate authorities for the endpoint.' },
}
