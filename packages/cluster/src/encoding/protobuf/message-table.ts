import generated from './message-table.generated.json' with { type: 'json' }

/** A field of a message, and what becomes of it in JSON. */
export interface MessageField {
  /** In JSON; empty for a struct whose members stand in place of it. */
  readonly name: string
  readonly form: 'one' | 'list' | 'map'
  /** A scalar of protobuf, or the name of a message. Keys of maps are texts. */
  readonly type: string
  /** `present`: when it was sent. `always`: also the zero that Go sends for what is not set. `not-zero`: that is left out. */
  readonly keep: 'present' | 'always' | 'not-zero'
}

export type MessageFields = ReadonlyMap<number, MessageField>

interface Table {
  readonly kinds: Readonly<Record<string, string>>
  /** Fields with a space between, each as NUMBER:NAME=TYPE: `[]` before the type is a list, `{}` a map; after it `?` means present, `!` always. */
  readonly messages: Readonly<Record<string, string>>
}

const table: Table = generated
const parsed = new Map<string, MessageFields>()

/** The message of a kind, for example of `v1 ConfigMap`; undefined for a kind that has none. */
export function messageOfKind(apiVersion: string, kind: string): string | undefined {
  const { kinds } = table
  const name = `${apiVersion} ${kind}`
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined
}

/** Throws for a name that the table does not have: it refers to its own messages only. */
export function fieldsOf(message: string): MessageFields {
  const known = parsed.get(message)
  if (known !== undefined) return known
  const text = table.messages[message]
  if (text === undefined) throw new Error(`no message ${message}`)
  const fields = new Map(text === '' ? [] : text.split(' ').map(parseField))
  parsed.set(message, fields)
  return fields
}

function parseField(text: string): [number, MessageField] {
  const [, number, name = '', form, type = '', mark] = /^(\d+):([^=]*)=(\[\]|\{\})?([^?!]+)([?!])?$/.exec(text) ?? []
  const keep = mark === '?' ? 'present' : mark === '!' ? 'always' : 'not-zero'
  return [Number(number), { name, form: form === '[]' ? 'list' : form === '{}' ? 'map' : 'one', type, keep }]
}
