/** Fewest and most arguments of every function there is. */
export const ARITY = {
  and: [1, Infinity],
  or: [1, Infinity],
  not: [1, 1],
  eq: [2, Infinity],
  ne: [2, 2],
  lt: [2, 2],
  le: [2, 2],
  gt: [2, 2],
  ge: [2, 2],
  len: [1, 1],
  index: [1, Infinity],
  slice: [1, 4],
  print: [0, Infinity],
  printf: [1, Infinity],
  println: [0, Infinity],
  html: [0, Infinity],
  js: [0, Infinity],
  urlquery: [0, Infinity],
  json: [1, 1],
  quote: [1, 1],
  fromJson: [1, 1],
} as const satisfies Record<string, readonly [number, number]>

export type FunctionName = keyof typeof ARITY

export function isFunctionName(name: string): name is FunctionName {
  return Object.hasOwn(ARITY, name)
}

/** The problem of a call, if it has one. */
export function arityProblem(name: FunctionName, count: number): string | undefined {
  const [fewest, most] = ARITY[name]
  if (count >= fewest && count <= most) return undefined
  const wanted = fewest === most ? `${fewest}` : most === Infinity ? `at least ${fewest}` : `${fewest} to ${most}`
  return `${name} takes ${wanted} argument${wanted === '1' || wanted === 'at least 1' ? '' : 's'}, not ${count}`
}
