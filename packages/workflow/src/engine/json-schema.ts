import type { Json, JsonObject } from '@thv/kernel/json'
import { boundedTime, TimeExceeded } from '@thv/kube-schema/values/bounded-time'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'

/** A compiled JSON Schema (2020-12). */
export interface JsonSchema {
  /** A copy with the defaults of the schema filled in, or what is wrong with the value. */
  check(value: Json): { readonly value: Json; readonly problems: readonly string[] }
}

/** Text of a schema, in characters of JSON. */
export const MAX_SCHEMA_LENGTH = 100 * 1024
const PATTERN_LIMIT_MS = 2_000

let ajv: Ajv2020 | undefined

/** @throws Error that says why it is no schema */
export function compileSchema(schema: JsonObject): JsonSchema {
  const text = JSON.stringify(schema)
  if (text.length > MAX_SCHEMA_LENGTH) throw new Error('the schema is larger than 100 KiB')
  ajv ??= new Ajv2020({ strict: false, validateFormats: false, logger: false, useDefaults: true, addUsedSchema: false, allErrors: false })
  // Authors name the draft they know; the keywords in use mean the same in all of them.
  const { $schema: _draft, $id: _id, ...own } = JSON.parse(text) as Record<string, unknown>
  // Not in bounded time: a compilation that is interrupted leaves the compiler broken. No pattern of the schema runs here.
  const validate = ajv.compile(own)
  ajv.removeSchema(own)
  const hasPatterns = /"pattern(?:Properties)?":/.test(text)
  return {
    check(value) {
      const copy = structuredClone(value) as Json
      const isValid = () => validate(copy) as boolean
      try {
        const ok = hasPatterns ? boundedTime(PATTERN_LIMIT_MS, isValid) : isValid()
        return { value: copy, problems: ok ? [] : (validate.errors ?? []).map(problemText) }
      } catch (error) {
        if (error instanceof TimeExceeded) return { value: copy, problems: ['a pattern of the schema takes too long on this value'] }
        throw error
      }
    },
  }
}

/** Paths and rules, never values: these may be secrets. */
function problemText({ instancePath, message, params, keyword }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.')
  const extra = keyword === 'additionalProperties' ? ` (${String(params['additionalProperty'])})` : ''
  return `${path === '' ? '' : `${path} `}${message ?? 'does not fit the schema'}${extra}`
}
