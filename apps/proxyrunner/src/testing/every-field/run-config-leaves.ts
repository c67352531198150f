import type { AnyFieldTable, ValueReader } from '@thv/runconfig/field'
import { RUN_CONFIG_FIELDS } from '@thv/runconfig/run-config-fields'

/** All fields of a RunConfig that hold a value, below these members: `rate_limit_config.tools[].name`, `tools_override.NAME.name`. */
export function leavesBelow(members: readonly string[]): string[] {
  const fields = RUN_CONFIG_FIELDS as unknown as AnyFieldTable
  return members.flatMap((name) => leavesOf(name, fields[name]?.reader))
}

export const RUN_CONFIG_MEMBERS: readonly string[] = Object.keys(RUN_CONFIG_FIELDS)

function leavesOf(path: string, reader: ValueReader<unknown> | undefined): string[] {
  if (reader === undefined) throw new TypeError(`a RunConfig has no ${path}`)
  if (reader.items !== undefined && hasFields(reader.items)) {
    const isMap = reader.expects.startsWith('an object')
    return leavesOf(isMap ? `${path}.NAME` : `${path}[]`, reader.items)
  }
  if (reader.fields === undefined) return [path]
  return Object.entries(reader.fields).flatMap(([name, field]) => leavesOf(`${path}.${name}`, field.reader))
}

function hasFields({ fields, items }: ValueReader<unknown>): boolean {
  return fields !== undefined || (items !== undefined && hasFields(items))
}

/** The document with one leaf changed; undefined removes it. In lists and maps the first item is meant. */
export function withLeaf(document: object, path: string, value: unknown): object {
  const copy = structuredClone(document) as Record<string, unknown>
  let at: Record<string, unknown> = copy
  const steps = path.replaceAll('[]', '.0').split('.')
  for (const [index, step] of steps.entries()) {
    const key = step === 'NAME' ? (Object.keys(at)[0] ?? '') : step
    if (index === steps.length - 1) {
      if (value === undefined) delete at[key]
      else at[key] = value
    } else {
      at[key] ??= {}
      at = at[key] as Record<string, unknown>
    }
  }
  return copy
}
