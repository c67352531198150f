import type { Static } from 'typebox'
import { DURATION_PATTERN, int32, list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact } from '../schema/normalize.ts'

/** Methods that limits can meter besides `tools/call`. */
export const METERED_METHODS = [
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'completion/complete',
] as const

/** How many calls are let through. A call must pass the limits of the server and those of its tool. */
export const rateLimiting = (description: string) =>
  obj(
    description,
    {
      shared: opt(bucket('Limit for all users together.')),
      perUser: opt(bucket('Limit for each user; needs authentication.')),
      tools: opt(
        list(
          'Limits for single tools.',
          obj(
            'Limits for one tool.',
            {
              name: str('Name of the tool, as clients see it.', { minLength: 1, maxLength: 256 }),
              shared: opt(bucket('Limit for all users together.')),
              perUser: opt(bucket('Limit for each user; needs authentication.')),
            },
            {
              rules: [
                { rule: 'has(self.shared) || has(self.perUser)', message: 'a tool limit must set at least one of shared and perUser' },
              ],
            },
          ),
          { merge: ['name'], maxItems: 256 },
        ),
      ),
      methods: opt(
        list('Methods that shared and perUser count besides tools/call.', oneOf('Name of a method.', METERED_METHODS), {
          merge: 'set',
          maxItems: METERED_METHODS.length,
        }),
      ),
    },
    {
      rules: [
        {
          rule: 'has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)',
          message: 'rateLimiting must set at least one of shared, perUser and tools',
        },
        {
          rule: '!has(self.methods) || size(self.methods) == 0 || has(self.shared) || has(self.perUser)',
          message: 'methods needs shared or perUser: limits of tools meter tools/call alone',
        },
      ],
    },
  )

const bucket = (description: string) =>
  obj(description, {
    maxTokens: int32('Capacity of the token bucket: calls that may be made at once.', { minimum: 1 }),
    refillPeriod: str('Time in which an empty bucket refills, such as 1m.', {
      pattern: DURATION_PATTERN,
      maxLength: 64,
      rules: [{ rule: "self.matches('[1-9]')", message: 'refillPeriod must be longer than zero' }],
    }),
  })

/** CEL over a rateLimiting object at `path`: whether any limit of it is per user. */
export const anyPerUser = (path: string) => `(has(${path}.perUser) || (has(${path}.tools) && ${path}.tools.exists(t, has(t.perUser))))`

export type RateLimiting = Static<ReturnType<typeof rateLimiting>>
export type RateLimitBucket = NonNullable<RateLimiting['shared']>

export interface CanonicalRateLimiting {
  shared?: RateLimitBucket
  perUser?: RateLimitBucket
  tools: NonNullable<RateLimiting['tools']>
  methods: NonNullable<RateLimiting['methods']>
}

export function normaliseRateLimiting(value: RateLimiting | undefined): CanonicalRateLimiting | undefined {
  return value && compact({ shared: value.shared, perUser: value.perUser, tools: value.tools ?? [], methods: value.methods ?? [] })
}
