import { compact, isRecord, type ProblemList } from '../../schema/normalize.ts'
import { type CompositeTool, OUTPUT_TYPES } from './composite-tool.ts'

export const MAX_OUTPUT_DEPTH = 10

type OutputType = (typeof OUTPUT_TYPES)[number]

export interface CanonicalOutputProperty {
  type: OutputType
  description?: string
  value?: string
  default?: unknown
  properties?: Record<string, CanonicalOutputProperty>
}

export interface CanonicalOutput {
  properties: Record<string, CanonicalOutputProperty>
  required: string[]
}

/** The server checks the first level only: what lies below `properties` of a result is free-form there. */
export function normaliseOutput(problems: ProblemList, field: string, output: NonNullable<CompositeTool['output']>): CanonicalOutput {
  return { properties: membersOf({ problems, field, depth: 1 }, output.properties), required: output.required ?? [] }
}

interface Level {
  problems: ProblemList
  field: string
  depth: number
}

function membersOf(level: Level, members: Record<string, unknown>): Record<string, CanonicalOutputProperty> {
  const canonical: Record<string, CanonicalOutputProperty> = {}
  for (const [name, member] of Object.entries(members)) {
    const property = propertyOf({ ...level, field: `${level.field}.properties.${name}` }, member)
    // A name like __proto__ must become a member, too.
    if (property) Object.defineProperty(canonical, name, { value: property, enumerable: true, configurable: true, writable: true })
  }
  return canonical
}

/** One that is not described as it should be is a problem and is left out. */
function propertyOf(level: Level, value: unknown): CanonicalOutputProperty | undefined {
  const { problems, field, depth } = level
  if (!isRecord(value)) return wrong(level, `${field} must be an object with type and value`)
  const type = OUTPUT_TYPES.find((known) => known === value['type'])
  if (!type) return wrong(level, `${field}.type must be one of ${OUTPUT_TYPES.join(', ')}`)
  for (const key of Object.keys(value)) {
    if (!MEMBERS.includes(key)) problems.add(`${field}.${key}`, 'forbidden', `${field} may only have ${MEMBERS.join(', ')}`)
  }
  const { description, value: template, properties } = value
  if (description !== undefined && typeof description !== 'string') return wrong(level, `${field}.description must be a string`)
  if (template !== undefined && typeof template !== 'string') return wrong(level, `${field}.value must be a string`)
  if (properties !== undefined && (type !== 'object' || !isRecord(properties))) {
    return wrong(level, `${field}.properties must be an object, and only a result of type object may have it`)
  }
  if ((template === undefined) === (properties === undefined)) {
    problems.add(field, 'missing', `${field} must have value, or properties if its type is object, and not both`)
    return undefined
  }
  if (properties && depth >= MAX_OUTPUT_DEPTH) {
    problems.add(field, 'forbidden', `${field} lies too deep: at most ${MAX_OUTPUT_DEPTH} levels of properties`)
    return undefined
  }
  return compact({
    type,
    description,
    value: template,
    default: value['default'],
    properties: properties && membersOf({ problems, field, depth: depth + 1 }, properties),
  })
}

const MEMBERS = ['type', 'description', 'value', 'default', 'properties']

function wrong({ problems, field }: Level, message: string): undefined {
  problems.add(field, 'wrong_type', message)
  return undefined
}
