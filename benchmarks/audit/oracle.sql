-- The counts that an audit must give, in SQL alone: every envelope is taken apart field by field, and the bytes
-- that a node vouches for are held against those that the chain demands.
--
-- Given: tables `expected` (sequence_id, block_number, is_quarantined, unsigned, transaction_hash),
-- `logs` (topics, data), `served` (node_id, claimed_sequence_id, envelope) and
-- `nodes` (node_id, first_block, last_block, counter).

CREATE MACRO octet(content, place) AS
  TRY_CAST('0x' || hex(array_slice(content, place, place)) AS UTINYINT);

-- How many bytes a varint takes; NULL where the content ends before it does.
CREATE MACRO varint_width(content, place) AS
  list_position([octet(content, place + step) < 128 FOR step IN range(10)], true);

CREATE MACRO varint(content, place) AS
  list_sum([
    (octet(content, place + step)::HUGEINT & 127) << (7 * step)
    FOR step IN range(coalesce(varint_width(content, place), 0))
  ]);

-- The fields of each message in `source` (id, content), in their order. A field without a value is
-- where a message cannot be read any further.
CREATE MACRO fields(source) AS TABLE
  WITH RECURSIVE walk AS (
    SELECT id, content, 0::BIGINT AS place, 1::BIGINT AS next, NULL::HUGEINT AS number,
      NULL::HUGEINT AS value, NULL::BLOB AS bytes
    FROM query_table(source)
    UNION ALL
    SELECT id, content, next AS place,
      CASE tag & 7
        WHEN 0 THEN behind_tag + varint_width(content, behind_tag)
        WHEN 2 THEN behind_tag + varint_width(content, behind_tag) + varint(content, behind_tag)
      END::BIGINT AS next,
      tag >> 3 AS number,
      varint(content, behind_tag) AS value,
      CASE WHEN tag & 7 = 2 THEN array_slice(
        content,
        behind_tag + varint_width(content, behind_tag),
        (behind_tag + varint_width(content, behind_tag) + varint(content, behind_tag) - 1)::BIGINT
      ) END AS bytes
    FROM (
      SELECT id, content, next, varint(content, next) AS tag,
        next + varint_width(content, next) AS behind_tag
      FROM walk
      WHERE next <= octet_length(content)
    )
  )
  SELECT id, place, number, value, bytes,
    coalesce(number > 0 AND next <= octet_length(content) + 1, false) AS is_whole
  FROM walk
  WHERE place > 0;

CREATE TABLE rows AS SELECT row_number() OVER () AS id, * FROM served;

CREATE TABLE outer_messages AS SELECT id, envelope AS content FROM rows;
CREATE TABLE outer_fields AS FROM fields('outer_messages');

-- The last of two fields with one number counts; of a proof's two kinds too.
CREATE TABLE parts AS
  SELECT id,
    bool_and(is_whole) AS is_whole,
    arg_max(bytes, place) FILTER (number = 1) AS unsigned,
    arg_max(number, place) FILTER (number IN (2, 3)) AS proof
  FROM outer_fields GROUP BY id;

CREATE TABLE proof_messages AS
  SELECT id * 1000 + place AS id, bytes AS content FROM outer_fields WHERE number = 3;
CREATE TABLE transactions AS
  SELECT id // 1000 AS id, arg_max(bytes, id * 1000 + place) AS transaction_hash
  FROM fields('proof_messages') WHERE number = 1 GROUP BY ALL;

CREATE TABLE unsigned_messages AS SELECT id, unsigned AS content FROM parts WHERE unsigned NOT NULL;
CREATE TABLE claims AS
  SELECT id,
    bool_and(is_whole) AS is_whole,
    coalesce(arg_max(value, place) FILTER (number = 1), 0) AS originator_id,
    coalesce(arg_max(value, place) FILTER (number = 2), 0) AS sequence_id
  FROM fields('unsigned_messages') GROUP BY id;

CREATE TABLE readable AS
  SELECT node_id, rows.id, envelope, claimed_sequence_id, originator_id, sequence_id, unsigned,
    transaction_hash,
    coalesce(
      parts.is_whole AND claims.is_whole AND proof = 3 AND octet_length(transaction_hash) = 32, false
    ) AS is_readable
  FROM rows
  LEFT JOIN parts USING (id) LEFT JOIN transactions USING (id) LEFT JOIN claims USING (id);

-- The payloads in the chain's logs, and how often: word 3 of a payload's event is its sequence.
CREATE TABLE emitted AS
  SELECT ('0x' || hex(array_slice(data, 89, 96)))::UBIGINT AS sequence_id, count(*) AS times
  FROM logs
  WHERE len(topics) = 1 AND octet_length(data) = 448
  GROUP BY ALL;

CREATE TABLE demanded AS
  SELECT node_id, expected.* EXCLUDE (block_number), counter,
    NOT is_quarantined AND block_number BETWEEN first_block AND last_block AS is_required
  FROM expected JOIN emitted USING (sequence_id) CROSS JOIN nodes
  WHERE times = 1;

-- One row per node, originator and sequence that either side knows.
CREATE TABLE compared AS
  WITH claimed AS (
    SELECT node_id,
      CASE WHEN is_readable THEN originator_id ELSE 0 END AS originator_id,
      CASE WHEN is_readable THEN sequence_id ELSE claimed_sequence_id END AS sequence_id,
      is_readable, envelope, unsigned, transaction_hash
    FROM readable
  ),
  judged AS (
    SELECT claimed.*,
      is_readable AND demanded.unsigned = claimed.unsigned
        AND demanded.transaction_hash = claimed.transaction_hash AS is_right
    FROM claimed LEFT JOIN demanded
      ON claimed.node_id = demanded.node_id AND originator_id = 0
        AND claimed.sequence_id = demanded.sequence_id
  ),
  keys AS (
    SELECT node_id, originator_id, sequence_id,
      count(*) FILTER (is_readable) AS served,
      count(*) FILTER (is_right) AS "right",
      count(DISTINCT envelope) FILTER (is_readable AND NOT coalesce(is_right, false)) AS wrong,
      count(DISTINCT envelope) FILTER (NOT is_readable) AS unreadable
    FROM judged GROUP BY ALL
  )
  SELECT node_id, coalesce(originator_id, 0) AS originator_id, sequence_id,
    coalesce(served, 0) AS served, coalesce("right", 0) AS "right", coalesce(wrong, 0) AS wrong,
    coalesce(unreadable, 0) AS unreadable, is_required, is_quarantined,
    demanded.unsigned IS NOT NULL AS is_known
  FROM keys FULL JOIN (SELECT 0 AS originator_id, * FROM demanded) AS demanded
    USING (node_id, originator_id, sequence_id);

CREATE TABLE counts AS
  SELECT node_id,
    count(*) FILTER (is_required) AS expected,
    count(*) FILTER (is_known AND "right" > 0 AND wrong = 0 AND NOT is_quarantined) AS matched,
    count(*) FILTER (is_required AND served = 0 AND unreadable = 0) AS "ENVELOPE_MISSING",
    sum(wrong) FILTER (is_known) AS "ENVELOPE_ALTERED",
    sum(wrong) FILTER (NOT is_known AND is_impossible) AS "ENVELOPE_INVENTED",
    count(*) FILTER (served > 1) AS "ENVELOPE_DUPLICATED",
    sum(unreadable) AS "ENVELOPE_UNREADABLE",
    count(*) FILTER (is_known AND is_quarantined AND "right" > 0 AND wrong = 0)
      AS "QUARANTINED_SERVED"
  FROM (
    SELECT *, originator_id <> 0 OR sequence_id = 0 OR sequence_id > counter AS is_impossible
    FROM compared JOIN nodes USING (node_id)
  )
  GROUP BY node_id;
