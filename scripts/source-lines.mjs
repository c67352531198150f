// Part of every bundle: traces name the lines of the sources. Nothing is read before somebody looks at a stack; "node
// --enable-source-maps" would read maps of 1 to 2 MB at every start and keep them. They are forgotten a moment after their last use.
// The names are long because a bundle has one scope: a short one would rename all others like it.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const SOURCE_LINES_KEPT_MS = 5_000
/** Of the bundle and its parts. */
const ownFolder = new URL('.', import.meta.url).href
const lineMaps = new Map()
let forgetLineMaps

if (!process.sourceMapsEnabled)
  Error.prepareStackTrace = (error, frames) =>
    [errorHead(error), ...frames.map(isErrorOfUndici(error) ? String : lineOfFrame)].join('\n    at ')

/**
 * A stream looks at the stack of every error that it is destroyed with, and undici destroys each connection so that was idle for a while: reading
 * a map for that would take tens of milliseconds and 5 MB after every pause. The lines are those of undici, which say little.
 */
function isErrorOfUndici(error) {
  try {
    return typeof error?.code === 'string' && error.code.startsWith('UND_ERR_')
  } catch {
    return false
  }
}

function errorHead(error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return '<error>'
  }
}

function lineOfFrame(frame) {
  const text = String(frame)
  try {
    const file = frame.getFileName()
    if (!file?.startsWith(ownFolder)) return text
    const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()]
    const { originalSource, originalLine, originalColumn } = loadLineMap(file).findEntry(line - 1, column - 1)
    if (originalSource === undefined) return text
    const source = originalSource.replace(/^(?:\.\.\/)+/, '')
    return text.replace(`${file}:${line}:${column}`, () => `${source}:${originalLine + 1}:${originalColumn + 1}`)
  } catch {
    return text // without its map a trace still says something
  }
}

function loadLineMap(file) {
  const map = lineMaps.get(file) ?? new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(file)}.map`, 'utf8')))
  lineMaps.set(file, map)
  clearTimeout(forgetLineMaps)
  forgetLineMaps = setTimeout(() => lineMaps.clear(), SOURCE_LINES_KEPT_MS)
  forgetLineMaps.unref()
  return map
}
