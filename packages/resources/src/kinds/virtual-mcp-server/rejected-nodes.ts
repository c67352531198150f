import { type TSchema, Type } from 'typebox'
import { free, rejected } from '../../schema/nodes.ts'

/* `rejected()` is for objects; for a value of another type the message would name the type instead of the fix. */

export const rejectedList = (instead: string, items: TSchema = free('Not supported.')) =>
  Type.Unsafe<unknown[]>({ ...withoutObject(instead), type: 'array', items, 'x-kubernetes-list-type': 'atomic' })

export const rejectedString = (instead: string) => Type.Unsafe<string>({ ...withoutObject(instead), type: 'string' })

function withoutObject(instead: string): Record<string, unknown> {
  const keywords = Object.entries(rejected(instead))
  return Object.fromEntries(keywords.filter(([keyword]) => keyword !== 'x-kubernetes-preserve-unknown-fields'))
}
