// Part of every bundle: traces name the lines of the sources. Nothing is read before somebody looks at a stack; "node
// --enable-source-maps" would read the map of 1 to 2 MB at every start and keep it. The map is forgotten a moment after its last use.
// The names are long because a bundle has one scope: a short one would rename all others like it.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const SOURCE_LINES_KEPT_MS = 5_000
const ownBundle = import.meta.url
let lineMap
let forgetLineMap

if (!process.sourceMapsEnabled)
  Error.prepareStackTrace = (error, frames) => [errorHead(error), ...frames.map(lineOfFrame)].join('\n    at ')

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
    if (frame.getFileName() !== ownBundle) return text
    const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()]
    const { originalSource, originalLine, originalColumn } = loadLineMap().findEntry(line - 1, column - 1)
    if (originalSource === undefined) return text
    const source = originalSource.replace(/^(?:\.\.\/)+/, '')
    return text.replace(`${ownBundle}:${line}:${column}`, () => `${source}:${originalLine + 1}:${originalColumn + 1}`)
  } catch {
    return text // without its map a trace still says something
  }
}

function loadLineMap() {
  lineMap ??= new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(ownBundle)}.map`, 'utf8')))
  clearTimeout(forgetLineMap)
  forgetLineMap = setTimeout(() => (lineMap = undefined), SOURCE_LINES_KEPT_MS)
  forgetLineMap.unref()
  return lineMap
}
