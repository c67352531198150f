import { type LabelMatcher, parseLabelSelector } from '@thv/kube/objects/label-selector'
import type { StoredObject } from '../../store/stored-object.ts'
import { at, isObject, type ServedKind } from './served-kind.ts'
import { badRequest } from './status-error.ts'

export type ObjectFilter = (object: StoredObject) => boolean

/** The filter of a list or watch; undefined when everything is wanted. Throws what the server answers to a selector it does not take. */
export function objectFilter(kind: ServedKind, query: URLSearchParams): ObjectFilter | undefined {
  const labels = labelMatcher(query.get('labelSelector') ?? '')
  const fields = fieldTerms(kind, query.get('fieldSelector') ?? '')
  if (labels === undefined && fields.length === 0) return undefined
  return (object) => {
    const found = at(object.body, 'metadata', 'labels')
    if (labels && !labels.matches(isObject(found) ? (found as Record<string, string>) : undefined)) return false
    return fields.every(({ read, value, equal }) => (read(object) === value) === equal)
  }
}

interface FieldTerm {
  readonly read: (object: StoredObject) => string
  readonly value: string
  readonly equal: boolean
}

function labelMatcher(text: string): LabelMatcher | undefined {
  if (text === '') return undefined
  try {
    return parseLabelSelector(text)
  } catch (error) {
    if (error instanceof RangeError) throw badRequest(`unable to parse requirement: ${error.message}`)
    throw error
  }
}

function fieldTerms(kind: ServedKind, text: string): FieldTerm[] {
  return splitTerms(text).map((term) => {
    const match = /^((?:[^=!\\]|\\.)+?)(!=|==|=)(.*)$/s.exec(term)
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    const [, field = '', operator, value = ''] = match
    return { read: fieldReader(kind, field), value: unescaped(value), equal: operator !== '!=' }
  })
}

function fieldReader(kind: ServedKind, field: string): (object: StoredObject) => string {
  if (field === 'metadata.name') return (object) => object.name
  if (field === 'metadata.namespace' && kind.namespaced) return (object) => object.namespace ?? ''
  const own = kind.rules.selectable
  const stored = own !== undefined && Object.hasOwn(own, field) ? own[field] : undefined
  if (stored === undefined) throw badRequest(own === undefined && !kind.custom ? onlyNames(field) : `field label not supported: ${field}`)
  return (object) => stored(object.body)
}

/** A backslash stands before a comma, an equals sign or another backslash, and nowhere else. */
function unescaped(value: string): string {
  const refuse = (why: string) => badRequest(`invalid field selector: ${why}`)
  return value.replaceAll(/\\(.?)|=/gsu, (all, next: string | undefined) => {
    if (all === '=') throw refuse('unescaped character in value: 61')
    if (next === '' || next === undefined || !',=\\'.includes(next)) throw refuse(`invalid escape sequence: ${all}`)
    return next
  })
}

const onlyNames = (field: string): string => `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`

/** At commas that no backslash stands before. */
function splitTerms(text: string): string[] {
  return text.match(/(?:\\.|[^,\\]|\\$)+/gs) ?? []
}
