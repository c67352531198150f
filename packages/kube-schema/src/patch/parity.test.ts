import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { builtinSchema } from '../builtin/builtin-schema.ts'
import { emptyObject } from '../builtin/empty-objects.ts'
import type { Json, JsonObject, KindSchema } from '../kind-schema.ts'
import { type CrdVersions, crdSchemas } from '../structural/crd-schemas.ts'
import { type FieldSet, setOf } from './field-set.ts'
import { applyJsonPatch } from './json-patch.ts'
import { applyMergePatch } from './merge-patch.ts'
import { serverSideApply, type Writer, withOwnership } from './ownership.ts'
import { recordedManagers } from './parity/recorded-object.ts'
import { SCENARIOS, type Scenario, type Step, WIDGET_CRD } from './parity/scenarios.ts'
import { PatchError } from './patch-error.ts'
import { applyStrategicMergePatch } from './strategic-merge.ts'

/*
 * Every step of every scenario, from the object that the real server had before it: who owns what afterwards, the
 * conflicts with their words, the merged object and what is refused. The answers are recorded by
 * parity/answers.cluster.test.ts.
 */

interface Answer {
  readonly status: number
  readonly message?: string
  readonly causes?: Json
  readonly object?: JsonObject
}

const ANSWERS = JSON.parse(readFileSync(new URL('../../recordings/patch/parity/answers.golden.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, readonly Answer[]>
>

describe.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', (name, scenario) => {
  const answers = ANSWERS[name] ?? []
  it.each(scenario.steps.map((step, index) => [index, `${step.verb} by ${step.manager}`, step] as const))(
    'step %i: %s',
    (index, _title, step) => {
      const before = answers.slice(0, index).findLast(({ object }) => object !== undefined)?.object
      const answer = answers[index]
      if (!answer) throw new Error('no answer recorded')
      const ours = outcomeOf(scenario, step, { before, after: answer.object })
      if (answer.object === undefined) {
        const { status, message, causes } = answer
        expect(ours).toEqual({ status, message, ...(causes !== undefined && { causes }) })
        return
      }
      expect(managersOf(ours.object)).toEqual(managersOf(answer.object))
      // defaults of built-in kinds are not ours yet
      if (isBuiltin(scenario)) expect(comparable(answer.object)).toMatchObject(comparable(ours.merged))
      else expect(comparable(ours.object)).toEqual(comparable(answer.object))
    },
  )
})

interface Place {
  readonly before: JsonObject | undefined
  readonly after: JsonObject | undefined
}

interface Outcome {
  readonly status?: number
  readonly message?: string
  readonly causes?: unknown
  readonly object?: JsonObject
  /** Before defaults. */
  readonly merged?: JsonObject
}

function outcomeOf(scenario: Scenario, step: Step, { before, after }: Place): Outcome {
  const schema = schemaOf(scenario)
  const writer = writerOf(scenario, step, schema)
  try {
    if (step.verb === 'apply') {
      const result = serverSideApply(before, whole(scenario, step.body as JsonObject, before), { ...writer, force: step.force ?? false })
      if ('conflict' in result) return { status: 409, message: result.conflict.message, causes: result.conflict.causes }
      return { object: schema.applyDefaults(result.object), merged: result.object }
    }
    const next = nextOf(scenario, step, { before, schema })
    // ownership of a built-in kind is computed for the object as the real server stored it, with its defaults
    const stored = after && isBuiltin(scenario) ? bare(after) : schema.applyDefaults(next)
    return { object: withOwnership(before, stored, writer), merged: next }
  } catch (error) {
    if (error instanceof PatchError) return { status: error.status, message: error.message }
    throw error
  }
}

function nextOf(scenario: Scenario, step: Step, { before, schema }: { before: JsonObject | undefined; schema: KindSchema }): JsonObject {
  const live = bare(before ?? {})
  switch (step.verb) {
    case 'merge':
      return applyMergePatch(live, step.body as Json)
    case 'json':
      return applyJsonPatch(live, step.body as Json)
    case 'strategic':
      return applyStrategicMergePatch(live, step.body as Json, schema.merge)
    default:
      return whole(scenario, step.body as JsonObject, before)
  }
}

function schemaOf(scenario: Scenario): KindSchema {
  const schema = isBuiltin(scenario) ? builtinSchema(scenario.apiVersion, scenario.kind) : widget
  if (!schema) throw new Error(`no schema of ${scenario.kind}`)
  return schema
}

const widget = crdSchemas(WIDGET_CRD as unknown as CrdVersions).get('v1')

function writerOf(scenario: Scenario, step: Step, schema: KindSchema): Writer {
  return {
    schema: schema.merge,
    manager: step.manager,
    apiVersion: scenario.apiVersion,
    now: '2026-01-01T00:00:00Z',
    ...(step.subresource && { subresource: step.subresource }),
    resetFields: resetFields(scenario, step),
    ...(isBuiltin(scenario) && { empty: emptyObject(scenario.kind) }),
  }
}

/** The status is written by its own endpoint, the rest by the other. */
function resetFields({ kind }: Scenario, { subresource }: Step): FieldSet {
  if (subresource) return setOf(['f:spec'])
  return kind === 'ConfigMap' ? setOf() : setOf(['f:status'])
}

function isBuiltin({ kind }: Scenario): boolean {
  return kind !== 'Widget'
}

function whole({ apiVersion, kind }: Scenario, body: JsonObject, before: JsonObject | undefined): JsonObject {
  const name = ((before?.['metadata'] ?? {}) as JsonObject)['name'] ?? 'new'
  return { apiVersion, kind, ...body, metadata: { ...(body['metadata'] as JsonObject | undefined), name } }
}

function bare(object: JsonObject): JsonObject {
  const { managedFields: _managedFields, ...metadata } = (object['metadata'] ?? {}) as Record<string, Json>
  return { ...object, metadata }
}

function managersOf(object: JsonObject | undefined): readonly JsonObject[] {
  const entries = ((object?.['metadata'] ?? {}) as JsonObject)['managedFields']
  return recordedManagers((entries ?? []) as readonly JsonObject[])
}

/** Without names, and without statuses, which controllers write. */
function comparable(object: JsonObject | undefined): JsonObject {
  const { metadata, status: _status, ...rest } = object ?? {}
  const { name: _name, namespace: _namespace, managedFields: _fields, ...meta } = (metadata ?? {}) as Record<string, Json>
  return { ...rest, metadata: meta }
}
