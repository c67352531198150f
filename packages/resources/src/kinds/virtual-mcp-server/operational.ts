import type { Static } from 'typebox'
import { bool, duration, int32, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { rejectedList } from './rejected-nodes.ts'

export const operational = () =>
  obj('Timeouts, health checks and what happens when backends fail.', {
    logLevel: opt(oneOf('debug for more log lines.', ['debug'])),
    timeouts: opt(
      obj('How long a call may take.', {
        default: opt(duration('For all backends.', { default: '30s' })),
        perWorkload: opt(map('For single backends, by name.', duration('For one backend.'), { maxProperties: 256 })),
      }),
    ),
    failureHandling: opt(failureHandling()),
    retry: opt(retry()),
  })

export type Operational = Static<ReturnType<typeof operational>>

/** `healthCheckTimeout` has no default here: with a short interval, a fixed one would be refused. */
const failureHandling = () =>
  obj(
    'Health checks and what follows from them.',
    {
      healthCheckInterval: opt(duration('How often a backend is checked.', { default: '30s' })),
      healthCheckTimeout: opt(duration('When a check has failed; 10s by default, or half the interval if that is less.')),
      unhealthyThreshold: opt(int32('Failed checks in a row until a backend counts as unhealthy.', { minimum: 1, default: 3 })),
      statusReportingInterval: opt(duration('How often the status of this object is written.', { default: '30s' })),
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
    'Stops calling a backend that keeps failing.',
    {
      enabled: opt(bool('Whether it is used.', { default: false })),
      failureThreshold: opt(int32('Failures in a row until calls stop.', { minimum: 1, default: 5 })),
      timeout: opt(duration('When it is tried again.', { default: '60s' })),
    },
    { rules: [{ rule: "duration(self.timeout) >= duration('1s')", message: 'timeout must be at least 1s', fieldPath: '.timeout' }] },
  )

const retry = () =>
  obj('Repeats calls that failed on the way. Only those that were never sent, or that change nothing.', {
    attempts: opt(int32('How often a call is tried in all; 1 is never again.', { minimum: 1, maximum: 10, default: 3 })),
    backoff: opt(duration('Wait before the second try, doubled each time.', { default: '250ms' })),
    on: opt(
      list(
        'Which failures count; connect by default. YAML needs quotation marks round this key.',
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
