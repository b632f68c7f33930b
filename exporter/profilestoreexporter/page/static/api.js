// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Requests to the API of the page's own origin.

// APIError is an error of the API, with a hint that tells the user what to do. isTemporary reports that the same request can succeed later.
class APIError extends Error {
  constructor(message, hint, status, isTemporary = status === 429 || status >= 500) {
    super(message);
    Object.assign(this, {hint, status, isTemporary});
  }
}

const known = new Map(); // endpoint → {url, etag, body} of its last answer

// ask returns the JSON of an endpoint: the same object as before if nothing has changed, null if the signal aborted it. The name is for
// progressOf.
export async function ask(endpoint, query, signal, name) {
  const parameters = new URLSearchParams(query).toString();
  const url = `api/${endpoint}${parameters ? `?${parameters}` : ''}`;
  let answer;
  let text;
  try {
    answer = await fetch(url, {signal, headers: {Accept: 'application/json', 'Progress-Id': name}, credentials: 'same-origin'});
    text = await answer.text();
  } catch {
    if (signal?.aborted) return null;
    throw new APIError('The collector does not answer.',
      `Is it running, and is ${location.host} its address? The page asks again by itself.`, 0, true);
  }
  const etag = answer.headers.get('ETag');
  const before = known.get(endpoint);
  if (etag && before?.url === url && before.etag === etag) return before.body;
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new APIError(`The answer to ${url.slice(0, 200)} (status ${answer.status}) is not JSON.`,
      'Something between the browser and the collector may have answered instead: look at the proxy, or ask the collector directly.', answer.status, true);
  }
  if (!answer.ok) throw new APIError(body.error || `The collector answered with status ${answer.status}.`, body.hint || '', answer.status);
  known.set(endpoint, {url, etag, body});
  return body;
}

// progressOf returns how many blocks the requests of a name have read, or null if that is not known, as from a collector that hangs.
export async function progressOf(name) {
  try {
    const answer = await fetch(`api/progress?id=${encodeURIComponent(name)}`, {signal: AbortSignal.timeout(2000), credentials: 'same-origin'});
    return answer.status === 200 ? await answer.json() : null; // 204: they have ended
  } catch {
    return null;
  }
}
