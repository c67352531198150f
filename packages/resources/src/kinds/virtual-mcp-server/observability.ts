import { AUDIT_LIMITS } from '@thv/kernel/audit-limits'
import type { Static } from 'typebox'
import { atMostOne } from '../../schema/cel.ts'
import { bool, int32, list, map, obj, oneOf, opt, port, str, stringMap } from '../../schema/nodes.ts'
import { REQUEST_EVENT_TYPES } from '../../shared/audit-config.ts'
import { HEADER_NAME_PATTERN, HEADER_VALUE_PATTERN, namesAreTokens } from '../../shared/http-header.ts'
import { collectorCaBundleRef, DEFAULT_SAMPLING_RATE, sensitiveHeaders } from '../../shared/telemetry-config.ts'

/** Traces and metrics, in the words of the vMCP configuration file. */
export const fileTelemetry = () =>
  obj(
    'Traces and metrics of the virtual server.',
    {
      endpoint: opt(str('Host and port of the OTLP/HTTP collector; a scheme is ignored.', { minLength: 1, maxLength: 2048 })),
      serviceName: opt(str('The service.name; by default the name of this object.', { minLength: 1, maxLength: 253 })),
      serviceVersion: opt(str('The service.version; by default that of the program.', { minLength: 1, maxLength: 253 })),
      tracingEnabled: opt(bool('Whether to send traces.', { default: false })),
      metricsEnabled: opt(bool('Whether to send metrics.', { default: false })),
      samplingRate: opt(
        str('Share of requests that are traced, from 0 to 1.', {
          maxLength: 32,
          pattern: '^(0(\\.\\d+)?|1(\\.0+)?)$',
          default: DEFAULT_SAMPLING_RATE,
        }),
      ),
      headers: opt(
        map('Headers for the collector.', str('The value.', { maxLength: 8192, pattern: HEADER_VALUE_PATTERN }), {
          maxProperties: 64,
          rules: [namesAreTokens],
        }),
      ),
      sensitiveHeaders: opt(sensitiveHeaders(str('Name of the header.', { minLength: 1, maxLength: 255, pattern: HEADER_NAME_PATTERN }))),
      insecure: opt(bool('Whether to send without TLS.', { default: false })),
      caBundleRef: opt(collectorCaBundleRef()),
      caCertPath: opt(str('File in the pod with CA certificates of the collector. Prefer caBundleRef.', { minLength: 1, maxLength: 4096 })),
      enablePrometheusMetricsPath: opt(bool('Whether /metrics is served.', { default: false })),
      prometheusPort: opt(port('Port of /metrics.', { default: 9464 })),
      metricsOnTransportPort: opt(bool('Whether the main port serves /metrics too.', { default: true })),
      environmentVariables: opt(
        list('Variables of the pod that become attributes.', str('Name of a variable.', { minLength: 1, maxLength: 1024 }), {
          merge: 'set',
          maxItems: 64,
        }),
      ),
      customAttributes: opt(stringMap('Further attributes.', { maxProperties: 64 })),
      useLegacyAttributes: opt(bool('Whether spans carry the older attribute names too.', { default: true })),
    },
    {
      rules: [
        {
          rule: '!has(self.endpoint) || self.tracingEnabled || self.metricsEnabled',
          message: 'with an endpoint, tracingEnabled or metricsEnabled must be true: else nothing would be sent',
          fieldPath: '.endpoint',
        },
        atMostOne(['caCertPath', 'caBundleRef'], 'caCertPath and caBundleRef must not both be set: use caBundleRef'),
      ],
    },
  )

export type FileTelemetry = Static<ReturnType<typeof fileTelemetry>>

export const AUDIT_EVENT_TYPES = [
  ...REQUEST_EVENT_TYPES,
  'workflow_started',
  'workflow_completed',
  'workflow_failed',
  'workflow_timed_out',
  'workflow_step_started',
  'workflow_step_completed',
  'workflow_step_failed',
  'workflow_step_skipped',
] as const

const eventTypes = (description: string) =>
  list(description, oneOf('Kind of event.', AUDIT_EVENT_TYPES), { merge: 'set', maxItems: AUDIT_EVENT_TYPES.length })

export const fileAudit = () =>
  obj('Audit log of the virtual server.', {
    enabled: opt(bool('Whether events are logged.', { default: false })),
    component: opt(str('Name in the events; by default that of this object.', { minLength: 1, maxLength: 253 })),
    eventTypes: opt(eventTypes('Types of events to write. Defaults to all.')),
    excludeEventTypes: opt(eventTypes('Types of events to leave out. Takes precedence over eventTypes.')),
    includeRequestData: opt(bool('Whether requests are logged with their content.', { default: false })),
    includeResponseData: opt(bool('Whether answers are logged with their content.', { default: false })),
    detectApplicationErrors: opt(bool('Whether to report errors inside a successful response.', { default: true })),
    maxDataSize: opt(
      int32('Bytes of a request or response that an event may hold; a larger one is left out.', {
        minimum: 0,
        maximum: AUDIT_LIMITS.dataBytes,
        default: 1024,
      }),
    ),
    maxDelegationDepth: opt(
      int32('Maximum number of actors of a delegation chain in an event.', {
        minimum: 1,
        maximum: AUDIT_LIMITS.delegationDepth,
        default: 10,
      }),
    ),
    logFile: opt(str('File to append to; by default standard output.', { minLength: 1, maxLength: 4096 })),
  })

export type FileAudit = Static<ReturnType<typeof fileAudit>>
