import type { Static } from 'typebox'
import { bool, duration, int32, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { rejectedList } from './rejected-nodes.ts'

export const operational = () =>
  obj('Timeouts, health checks and failure handling.', {
    logLevel: opt(oneOf('debug for more log lines.', ['debug'])),
    timeouts: opt(
      obj('Timeout of a call.', {
        default: opt(duration('Default of all backends.', { default: '30s' })),
        perWorkload: opt(map('For single backends, by name.', duration('For one backend.'), { maxProperties: 256 })),
        perTool: opt(map('For single tools, by the name that clients see.', duration('For one tool.'), { maxProperties: 1000 })),
      }),
    ),
    failureHandling: opt(failureHandling()),
    retry: opt(retry()),
    toolResults: opt(toolResults()),
  })

export type Operational = Static<ReturnType<typeof operational>>

/** `healthCheckTimeout` has no default here: with a short interval, a fixed one would be refused. */
const failureHandling = () =>
  obj(
    'Health checks and their consequences.',
    {
      healthCheckInterval: opt(duration('Interval of health checks.', { default: '30s' })),
      healthCheckTimeout: opt(duration('Timeout of a health check; 10s by default, or half the interval if that is less.')),
      unhealthyThreshold: opt(int32('Failed checks in a row until a backend counts as unhealthy.', { minimum: 1, default: 3 })),
      statusReportingInterval: opt(duration('Interval of status updates of this object.', { default: '30s' })),
      partialFailureMode: opt(
        oneOf('best_effort: serve what the healthy backends have; fail: refuse new sessions.', ['fail', 'best_effort'], {
          default: 'best_effort',
        }),
      ),
      circuitBreaker: opt(circuitBreaker()),
    },
    {
      rules: [
        {
          rule: '!has(self.healthCheckTimeout) || duration(self.healthCheckTimeout) < duration(self.healthCheckInterval)',
          message: 'healthCheckTimeout must be shorter than healthCheckInterval',
          fieldPath: '.healthCheckTimeout',
        },
      ],
    },
  )

const circuitBreaker = () =>
  obj(
    'Circuit breaker: stops calls to a backend that keeps failing.',
    {
      enabled: opt(bool('Enables the circuit breaker.', { default: false })),
      failureThreshold: opt(int32('Consecutive failures until the circuit opens.', { minimum: 1, default: 5 })),
      timeout: opt(duration('Time until the circuit is tried again.', { default: '60s' })),
    },
    { rules: [{ rule: "duration(self.timeout) >= duration('1s')", message: 'timeout must be at least 1s', fieldPath: '.timeout' }] },
  )

const toolResults = () =>
  obj('Limit of results.', {
    maxBytes: int32('Bytes of the JSON of a result.', { minimum: 1024 }),
    onExceed: opt(
      oneOf('error: answer with an error. truncate: cut texts, never structured content.', ['error', 'truncate'], {
        default: 'error',
      }),
    ),
  })

const retry = () =>
  obj('Retries of failed calls. Only calls that were never sent, or that are idempotent.', {
    attempts: opt(int32('Maximum number of attempts; 1 disables retries.', { minimum: 1, maximum: 10, default: 3 })),
    backoff: opt(duration('Delay before the second attempt, doubled each time.', { default: '250ms' })),
    on: opt(
      list(
        'Failures to retry; connect by default. YAML needs quotation marks around this key.',
        oneOf('connect: never sent. unavailable: 502, 503, 504. timeout: no answer in time. The last two for idempotent calls only.', [
          'connect',
          'unavailable',
          'timeout',
        ]),
        { merge: 'set', minItems: 1, maxItems: 3 },
      ),
    ),
    // YAML 1.1, and with it kubectl, reads a bare `on:` as this.
    true: opt(rejectedList('the key on needs quotation marks in YAML, write "on": [connect]', str('Not supported.'))),
  })
