import type { Log } from '../log.ts'

/** Keeps its lines, for tests to look at. */
export class CollectingLog implements Log {
  readonly lines: string[] = []

  debug(message: string, fields?: object): void {
    this.#add('debug', message, fields)
  }

  info(message: string, fields?: object): void {
    this.#add('info', message, fields)
  }

  warn(message: string, fields?: object): void {
    this.#add('warn', message, fields)
  }

  error(message: string, fields?: object): void {
    this.#add('error', message, fields)
  }

  #add(level: string, message: string, fields: object = {}): void {
    this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  }
}
