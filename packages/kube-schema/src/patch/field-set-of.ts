import type { Json, JsonObject, MergeSchema } from '../kind-schema.ts'
import { EMPTY_SET, type FieldSet, FieldSetBuilder } from './field-set.ts'
import { fieldStep, isMapValue, itemsByStep, shapeOf } from './typed-value.ts'

/** The paths that an applied object claims. */
export function fieldSetOf(object: JsonObject, schema: MergeSchema): FieldSet {
  const builder = new FieldSetBuilder()
  visit(object, schema, { path: [], builder })
  return builder.set
}

interface Walk {
  readonly path: readonly string[]
  readonly builder: FieldSetBuilder
}

function visit(value: Json, schema: MergeSchema, { path, builder }: Walk): void {
  const shape = shapeOf(value, schema)
  if (shape.kind === 'map') {
    for (const [name, member] of Object.entries(value as JsonObject)) {
      const below = [...path, fieldStep(name)]
      visit(member, shape.member(name), { path: below, builder })
      const isEmpty = member === null || (isMapValue(member) && Object.keys(member).length === 0)
      if (isEmpty || !shape.isField(name)) builder.insert(below)
    }
  } else if (shape.kind === 'list') {
    for (const [step, items] of itemsByStep(value as readonly Json[], shape.schema, path)) {
      const below = [...path, step]
      if (items.length === 1) visit(items[0] as Json, shape.schema.item(), { path: below, builder })
      builder.insert(below)
    }
  } else builder.insert(path)
}

/** With the struct fields on the way to its members, which are not written down in managedFields. */
export function withFieldsOnTheWay(set: FieldSet, schema: MergeSchema): FieldSet {
  const members = new Set(set.members)
  const children = new Map<string, FieldSet>()
  for (const [step, inner] of set.children) {
    if (step.startsWith('f:') && schema.type === 'map' && !schema.atomic && schema.isField(step.slice(2))) members.add(step)
    children.set(step, withFieldsOnTheWay(inner, schemaBelow(schema, step)))
  }
  return set === EMPTY_SET ? set : { members, children }
}

function schemaBelow(schema: MergeSchema, step: string): MergeSchema {
  if (schema.type === 'map' && step.startsWith('f:')) return schema.member(step.slice(2)) ?? { type: 'untyped' }
  return schema.type === 'list' ? schema.item() : { type: 'untyped' }
}
