import type { Json, JsonObject } from '@thv/kernel/json'
import { boundedTime, TimeExceeded } from '@thv/kube-schema/values/bounded-time'
import { Ajv2020, type ErrorObject, type Options } from 'ajv/dist/2020.js'

/** A compiled JSON Schema (2020-12). */
export interface JsonSchema {
  check(value: Json): CheckedValue
  /** One after the other, all within the time of one. What comes after the value that takes too long is not checked. */
  checkAll(values: readonly Json[]): readonly CheckedValue[]
}

/** A copy with the defaults of the schema filled in, or what is wrong with the value. */
export interface CheckedValue {
  readonly value: Json
  readonly problems: readonly string[]
}

/** Text of a schema, in characters of JSON. */
export const MAX_SCHEMA_LENGTH = 100 * 1024
const TIME_LIMIT_MS = 2_000
/** Patterns, comparisons of all items with each other and schemas that contain themselves can take a time out of proportion to the value. */
const SLOW_KEYWORDS = /"(?:pattern|patternProperties|uniqueItems|\$ref|\$dynamicRef)":/

/** A schema that is referred to is compiled once, not at every reference: the code grows in proportion to the text. */
const OPTIONS: Options = {
  ...{ strict: false, validateFormats: false, logger: false, useDefaults: true, addUsedSchema: false, allErrors: false },
  ...{ inlineRefs: false, code: { optimize: false } },
}

let compiler: Ajv2020 | undefined

/** @throws Error that says why it is no schema */
export function compileSchema(schema: JsonObject): JsonSchema {
  const text = JSON.stringify(schema)
  if (text.length > MAX_SCHEMA_LENGTH) throw new Error('the schema is larger than 100 KiB')
  // Authors name the draft they know; the keywords in use mean the same in all of them.
  const { $schema: _draft, $id: _id, ...own } = JSON.parse(text) as Record<string, unknown>
  const ajv = compiler ?? new Ajv2020(OPTIONS)
  compiler = undefined
  // Not in bounded time: a compilation that is interrupted leaves the compiler broken. No pattern of the schema runs here.
  const validate = ajv.compile(own)
  ajv.removeSchema(own)
  // One that has failed, or knows names out of this schema, is not used for others.
  if (!text.includes('"$id":')) compiler = ajv
  const mayBeSlow = SLOW_KEYWORDS.test(text)

  function checkOne(value: Json): CheckedValue {
    const copy = structuredClone(value) as Json
    return { value: copy, problems: validate(copy) ? [] : (validate.errors ?? []).map(problemText) }
  }
  function checkAll(values: readonly Json[]): CheckedValue[] {
    const checked: CheckedValue[] = []
    const goOn = () => {
      while (checked.length < values.length) checked.push(checkOne(values[checked.length] ?? null))
    }
    try {
      if (mayBeSlow) inBoundedTime(goOn)
      else goOn()
    } catch (error) {
      checked.push({ value: values[checked.length] ?? null, problems: [failureText(error)] })
    }
    return checked
  }
  return { checkAll, check: (value) => checkAll([value])[0] as CheckedValue }
}

/** Time in which the machine stood still, or had none for us, says nothing about a schema: then the work goes on, once. */
function inBoundedTime(goOn: () => void): void {
  for (let triesLeft = 1; ; triesLeft--) {
    const before = process.threadCpuUsage()
    try {
      boundedTime(TIME_LIMIT_MS, goOn)
      return
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before)
      const usedMs = (user + system) / 1_000
      if (!(error instanceof TimeExceeded) || usedMs > TIME_LIMIT_MS / 2 || triesLeft === 0) throw error
    }
  }
}

function failureText(error: unknown): string {
  if (error instanceof TimeExceeded) return 'the schema takes too long to check on this value'
  if (error instanceof RangeError) return 'is nested too deep'
  throw error
}

/** Paths and rules, never values: these may be secrets. */
function problemText({ instancePath, message, params, keyword }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.')
  const extra = keyword === 'additionalProperties' ? ` (${String(params['additionalProperty'])})` : ''
  return `${path === '' ? '' : `${path} `}${message ?? 'does not fit the schema'}${extra}`
}
