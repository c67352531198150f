import { isIP } from 'node:net'
import { labelNameProblems, labelValueProblems, portNameProblems, qualifiedNameProblems } from '@thv/kube-schema/values/name-checks'
import { readQuantity } from '@thv/kube-schema/values/quantity'

/** The check of a single value. */
export interface Scalar {
  readonly words: string
  readonly test: (value: unknown) => boolean
}

export const isDnsLabel = (value: string): boolean => labelNameProblems(value).length === 0
/** Keys of labels and annotations. */
export const isQualifiedName = (value: string): boolean => qualifiedNameProblems(value).length === 0
export const isLabelValue = (value: string): boolean => labelValueProblems(value).length === 0
export const isPortName = (value: string): boolean => portNameProblems(value).length === 0

/** Names that the runner takes and that API servers of all versions take. */
export function isVariableName(value: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(value)
}

/** A path inside of a volume. */
export function isInnerPath(value: string): boolean {
  return value !== '' && !value.startsWith('/') && !value.split('/').includes('..')
}

const MAX_INT32 = 2 ** 31 - 1

const integer = (min: number, max: number) => (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
const text = (test: (value: string) => boolean) => (value: unknown) => typeof value === 'string' && test(value)

export const SCALARS: Readonly<Record<string, Scalar>> = {
  any: { words: 'anything', test: () => true },
  text: { words: 'a text', test: text(() => true) },
  bool: { words: 'true or false', test: (value) => typeof value === 'boolean' },
  int32: { words: 'a whole number', test: integer(-MAX_INT32 - 1, MAX_INT32) },
  int64: { words: 'a whole number', test: integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) },
  count: { words: 'a whole number of at least 0', test: integer(0, MAX_INT32) },
  positive: { words: 'a whole number of at least 1', test: integer(1, MAX_INT32) },
  weight: { words: 'a whole number from 1 to 100', test: integer(1, 100) },
  seconds: { words: 'a whole number of at least 0', test: integer(0, Number.MAX_SAFE_INTEGER) },
  id: { words: 'a whole number from 0 to 2147483647', test: integer(0, MAX_INT32) },
  mode: { words: 'file permissions from 0 to 511 (octal 0777)', test: integer(0, 0o777) },
  port: { words: 'a port from 1 to 65535', test: integer(1, 65_535) },
  portOrZero: { words: 'a port from 0 to 65535', test: integer(0, 65_535) },
  portOrName: { words: 'a port from 1 to 65535 or the name of one', test: (value) => integer(1, 65_535)(value) || text(isPortName)(value) },
  portName: {
    words: 'a name of at most 15 lower-case letters, digits and dashes, with a letter in it',
    test: text((value) => value === '' || isPortName(value)),
  },
  quantity: { words: 'a quantity, such as 500m or 128Mi', test: (value) => readQuantity(value) !== undefined },
  label: { words: 'a name of at most 63 lower-case letters, digits and dashes', test: text(isDnsLabel) },
  labelKey: { words: 'a label key, such as kubernetes.io/hostname', test: text(isQualifiedName) },
  variable: { words: 'a name of letters, digits, _, . and -, not beginning with a digit', test: text(isVariableName) },
  ip: { words: 'an IP address', test: text((value) => isIP(value) > 0) },
  mountPath: { words: 'a path without a colon', test: text((value) => value !== '' && !value.includes(':')) },
  innerPath: { words: 'a relative path without ..', test: text(isInnerPath) },
}

/** `=A|B` is one of the words; an empty text is as good as absent. */
export function scalarOf(type: string): Scalar | undefined {
  if (!type.startsWith('=')) return SCALARS[type]
  const words = type.slice(1).split('|')
  return {
    words: words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`,
    test: text((value) => value === '' || words.includes(value)),
  }
}
