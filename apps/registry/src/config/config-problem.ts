/** One thing that is wrong with a configuration. Never repeats what came from a variable: that may be a secret. */
export interface ConfigProblem {
  /** From 1; 0 when it stands in no line: a variable of the environment, or the file as a whole. */
  readonly line: number
  readonly column: number
  /** `sources[0].git.repository`; empty for the whole file; the name of a variable that overrides a key. */
  readonly path: string
  readonly message: string
}

/** Where something stands. Line 0: in the environment, and `variable` says in which variable. */
export interface Place {
  readonly line: number
  readonly column: number
  readonly variable?: string
}

export const NO_PLACE: Place = { line: 0, column: 0 }

/** A key below a path, as people write it. */
export function keyPath(path: string, key: string): string {
  const plain = /^[A-Za-z_][\w-]*$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? plain : `${path}.${plain}`
}

/** `file:line:column: path: message`, as compilers print, so that editors find the place. */
export function problemLine(file: string, { line, column, path, message }: ConfigProblem): string {
  const isVariable = /^(THV_REGISTRY_|--)/.test(path)
  const place = line > 0 ? `${file}:${line}:${column}: ` : isVariable ? '' : `${file}: `
  return `${place}${path === '' ? '' : `${path}: `}${message}`
}

export class ProblemList {
  readonly list: ConfigProblem[] = []

  add(place: Place, path: string, message: string): void {
    if (this.list.length >= MAX_PROBLEMS) return
    this.list.push({ line: place.line, column: place.column, path: place.variable ?? path, message })
  }

  /** By place, as people read the file; those of variables last. */
  sorted(): ConfigProblem[] {
    return this.list.toSorted((a, b) => (a.line || Infinity) - (b.line || Infinity) || a.column - b.column)
  }
}

/** More are of no use to anybody. */
const MAX_PROBLEMS = 200
