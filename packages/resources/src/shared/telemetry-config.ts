import type { Static } from 'typebox'
import { bool, list, obj, opt, str, stringMap } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { type CanonicalCABundleRef, normaliseCaBundleRef } from './ca-bundle-ref.ts'
import { headerName, NAMES_DIFFER_MESSAGE } from './http-header.ts'
import { configMapKeySelector, secretKeyRef } from './references.ts'

export const DEFAULT_SAMPLING_RATE = '0.05'

/** Traces and metrics of a workload's proxy. */
export const telemetryConfig = (description: string) =>
  obj(description, {
    openTelemetry: opt(
      obj('Export to an OpenTelemetry collector over OTLP/HTTP.', {
        enabled: opt(bool('Enables this block.', { default: false })),
        endpoint: opt(str('Host and port of the collector; a scheme is ignored.', { minLength: 1, maxLength: 2048 })),
        serviceName: opt(str('The service.name; by default the name of this object.', { minLength: 1, maxLength: 253 })),
        headers: opt(
          list('Headers for the collector.', str('One header as key=value.', { maxLength: 8192, pattern: '^[^=\\s]+=' }), { maxItems: 64 }),
        ),
        sensitiveHeaders: opt(sensitiveHeaders()),
        insecure: opt(bool('Whether to send without TLS.', { default: false })),
        caBundleRef: opt(collectorCaBundleRef()),
        resourceAttributes: opt(stringMap('Resource attributes of everything that is sent.', { maxProperties: 64 })),
        metrics: opt(obj('Metrics.', { enabled: opt(bool('Whether to send metrics.', { default: false })) })),
        tracing: opt(
          obj('Traces.', {
            enabled: opt(bool('Whether to send traces.', { default: false })),
            samplingRate: opt(
              str('Share of requests that are traced, from 0 to 1.', {
                maxLength: 32,
                pattern: '^(0(\\.\\d+)?|1(\\.0+)?)$',
                default: DEFAULT_SAMPLING_RATE,
              }),
            ),
          }),
        ),
        useLegacyAttributes: opt(bool('Whether spans carry the older attribute names too.', { default: true })),
      }),
    ),
    prometheus: opt(
      obj('Metrics endpoint for Prometheus.', { enabled: opt(bool('Whether the proxy port serves /metrics.', { default: false })) }),
    ),
  })

export const collectorCaBundleRef = () =>
  obj('Certificates to trust when sending, besides those of the system.', {
    configMapRef: configMapKeySelector('The ConfigMap and the key (ca.crt if not given) with the certificates in PEM form.'),
  })

export const sensitiveHeaders = (name: ReturnType<typeof headerName> = headerName('Name of the header.')) =>
  list(
    'Headers for the collector with values from Secrets.',
    obj('A header whose value is in a Secret.', {
      name,
      secretKeyRef: secretKeyRef('Where the value is.'),
    }),
    {
      merge: ['name'],
      maxItems: 64,
      rules: [
        {
          rule: 'self.all(a, self.exists_one(b, a.name.lowerAscii() == b.name.lowerAscii()))',
          message: NAMES_DIFFER_MESSAGE,
        },
      ],
    },
  )

export type TelemetryConfig = Static<ReturnType<typeof telemetryConfig>>

export interface CanonicalTelemetryConfig {
  openTelemetry: {
    enabled: boolean
    endpoint?: string
    /** Absent: the name of the workload. */
    serviceName?: string
    headers: string[]
    sensitiveHeaders: { name: string; secretKeyRef: { name: string; key: string } }[]
    insecure: boolean
    caBundleRef?: CanonicalCABundleRef
    resourceAttributes: Record<string, string>
    metrics: { enabled: boolean }
    tracing: { enabled: boolean; samplingRate: string }
    useLegacyAttributes: boolean
  }
  prometheus: { enabled: boolean }
}

/** Everything is off unless asked for, so a missing block and an empty one are the same. */
export function normaliseTelemetryConfig(
  problems: ProblemList,
  field: string,
  value: TelemetryConfig | undefined,
): CanonicalTelemetryConfig {
  const otel = value?.openTelemetry
  return {
    openTelemetry: compact({
      enabled: otel?.enabled ?? false,
      endpoint: otel?.endpoint,
      serviceName: otel?.serviceName,
      headers: otel?.headers ?? [],
      sensitiveHeaders: otel?.sensitiveHeaders ?? [],
      insecure: otel?.insecure ?? false,
      caBundleRef: normaliseCaBundleRef(problems, `${field}.openTelemetry.caBundleRef`, otel?.caBundleRef),
      resourceAttributes: otel?.resourceAttributes ?? {},
      metrics: { enabled: otel?.metrics?.enabled ?? false },
      tracing: { enabled: otel?.tracing?.enabled ?? false, samplingRate: otel?.tracing?.samplingRate ?? DEFAULT_SAMPLING_RATE },
      useLegacyAttributes: otel?.useLegacyAttributes ?? true,
    }),
    prometheus: { enabled: value?.prometheus?.enabled ?? false },
  }
}
