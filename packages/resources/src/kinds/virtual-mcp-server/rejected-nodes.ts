import { type TSchema, Type } from 'typebox'
import { free, rejected } from '../../schema/nodes.ts'

/* `rejected()` is for objects; a value of another type would be told about its type instead of what to do. */

export const rejectedList = (instead: string, items: TSchema = free('Not supported.')) =>
  Type.Unsafe<unknown[]>({ ...withoutObject(instead), type: 'array', items, 'x-kubernetes-list-type': 'atomic' })

export const rejectedString = (instead: string) => Type.Unsafe<string>({ ...withoutObject(instead), type: 'string' })

function withoutObject(instead: string): Record<string, unknown> {
  const keywords = Object.entries(rejected(instead))
  return Object.fromEntries(keywords.filter(([keyword]) => keyword !== 'x-kubernetes-preserve-unknown-fields'))
}
