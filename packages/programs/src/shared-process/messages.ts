/*
 * Lines of JSON between the local platform and a process that runs several programs: the first kind over its standard input, the second
 * over its standard output. Values of variables are secrets, so they travel here and not in arguments.
 */

export type ToHost =
  | {
      readonly start: number
      /** After the name of the program. */
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
      readonly cwd: string
    }
  | { readonly signal: number; readonly name: string }
  /** Its output is not read fast enough: no more of it until `resume`. */
  | { readonly hold: number }
  | { readonly resume: number }

export type FromHost =
  | { readonly output: number; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly exit: number; readonly code: number }

/** U+2028 and U+2029 end a line for `node:readline`, and JSON leaves them as they are. */
export function encodeMessage(message: ToHost | FromHost): string {
  const text = JSON.stringify(message).replace(/[\u2028\u2029]/g, (end) => (end === '\u2028' ? '\\u2028' : '\\u2029'))
  return `${text}\n`
}

/** Undefined for a line of something else, such as a library that prints. */
export function readFromHost(line: string): FromHost | undefined {
  const message = parsed(line)
  if (typeof message?.['output'] === 'number' && typeof message['text'] === 'string') return message as FromHost
  return typeof message?.['exit'] === 'number' && typeof message['code'] === 'number' ? (message as FromHost) : undefined
}

/** Only the platform writes there. */
export function readToHost(line: string): ToHost | undefined {
  return parsed(line) as ToHost | undefined
}

function parsed(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined // the caller knows what to do with it
  }
}
