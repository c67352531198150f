// Part of every bundle: the trace of an uncaught error names the lines of the sources. No map is read for any other error, also not
// when its stack is: streams read the stack of every error that they are destroyed with, an abort included, and a map of 1 to 2 MB takes tens of
// milliseconds and up to 30 MB to decode. "node --enable-source-maps" would read all maps at every start and keep them. Maps are forgotten a moment
// after their last use. The names are long because a bundle has one scope: a short one would rename all others like it.
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const SOURCE_LINES_KEPT_MS = 5_000
/** Causes, and errors inside an AggregateError. */
const MOST_MAPPED_ERRORS = 16
/** A longer line is no frame but part of a message. */
const LONGEST_FRAME = 2_048
const FRAME_WITH_FILE = /^( +at .*?)(file:\/\/[^\s()]+):(\d+):(\d+)(\)?)$/
/** Of the bundle and its parts. */
const ownFolder = new URL('.', import.meta.url).href
const lineMaps = new Map()
let forgetLineMaps

// Before Node prints the error, and before a handler of the program sees it. With "--enable-source-maps" Node does it by itself.
if (!process.sourceMapsEnabled) process.on('uncaughtExceptionMonitor', nameSourceLines)

function nameSourceLines(uncaught) {
  const errors = new Set([uncaught])
  for (const error of errors) {
    if (errors.size > MOST_MAPPED_ERRORS) return
    try {
      error.stack = error.stack.split('\n').map(mappedFrame).join('\n')
      for (const inner of [error.cause, ...(Array.isArray(error.errors) ? error.errors : [])])
        if (typeof inner?.stack === 'string') errors.add(inner)
    } catch {
      // No error, or one whose stack cannot be replaced: it is printed as it is.
    }
  }
}

function mappedFrame(text) {
  if (text.length > LONGEST_FRAME) return text
  const [, start, file, line, column, end] = FRAME_WITH_FILE.exec(text) ?? []
  if (!file?.startsWith(ownFolder)) return text
  try {
    const { originalSource, originalLine, originalColumn } = loadLineMap(file).findEntry(line - 1, column - 1)
    if (originalSource === undefined) return text
    return `${start}${originalSource.replace(/^(?:\.\.\/)+/, '')}:${originalLine + 1}:${originalColumn + 1}${end}`
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
