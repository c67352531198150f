import { cutAtWord, lengthOf } from '../../text.ts'
import { type Annotations, ExportAnnotation } from '../objects/annotations.ts'

const MAX = 100
const MAX_OVERVIEW = 16_384

export interface Description {
  readonly text: string
  /** The whole text, where the schema's 100 characters do not hold it. */
  readonly overview?: string
}

/** Undefined where the annotation is absent or blank. Control characters become spaces. */
export function annotatedDescription(annotations: Annotations): Description | undefined {
  const full = (annotations[ExportAnnotation.description] ?? '')
    .replace(/[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, ' ')
    .trim()
  if (full === '') return undefined
  return lengthOf(full, MAX) <= MAX ? { text: full } : { text: cutAtWord(full, MAX), overview: cutAtWord(full, MAX_OVERVIEW) }
}

export function madeDescription({ namespace, name }: { readonly namespace: string; readonly name: string }): Description {
  return { text: cutAtWord(`MCP server ${namespace}/${name}`, MAX) }
}
