//! Contract C7: reading by queries, the same on every database.

use postrider::ErrorKind;
use postrider::model::{OutboxId, OutboxStatus, Timestamp, Value};
use postrider::store::{Direction, Query};
use uuid::Uuid;

use super::repository_own::{OrderMail, Shop, tenant};
use super::support::{World, on_each, seconds};

/// Three rows, a, b and c; the values of c are null.
async fn three(shop: &Shop<'_>) -> [OrderMail; 3] {
    let now = shop.world.now();
    let with = |name: &str, score, note: Option<&str>, seen: Option<Timestamp>, order: Option<u128>| {
        let (name, note) = (name.to_owned(), note.map(str::to_owned));
        move |mail: &mut OrderMail| {
            mail.row.recipient = name;
            (mail.score, mail.note, mail.seen_at, mail.order_id) = (score, note, seen, order.map(Uuid::from_u128));
            mail.urgent = score == Some(2);
            // Bytes that are no text, and a number between others.
            mail.weight = score.map(|score| if score == 1 { -0.5 } else { 1e300 });
            mail.raw = score.map(|score| vec![0, u8::try_from(score).unwrap(), 255]);
        }
    };
    [
        shop.made(with("a", Some(1), Some("Ä first"), Some(now), Some(1))).await,
        shop.made(with("b", Some(2), Some("ä second"), Some(now.plus(seconds(1))), Some(u128::MAX))).await,
        shop.made(with("c", None, None, None, None)).await,
    ]
}

fn by_name(query: Query) -> Query {
    query.order_by("recipient", Direction::Ascending)
}

on_each! {
    /// Contract C7: every condition, on columns of every kind; null meets none but `is_null`.
    async fn conditions_mean_the_same_on_columns_of_every_kind(world: World) {
        let shop = Shop::on(&world).await;
        let [a, ..] = three(&shop).await;
        let now = world.now();
        let q = || by_name(Query::new());
        for (query, expected) in [
            (q(), "abc"),
            (q().eq("score", 1), "a"),
            (q().ne("score", 1), "b"),
            (q().lt("score", 2), "a"),
            (q().le("score", 2), "ab"),
            (q().gt("score", 1), "b"),
            (q().ge("score", 1), "ab"),
            (q().is_null("score"), "c"),
            (q().not_null("score"), "ab"),
            (q().eq("score", Value::Int(None)), "c"),
            (q().ne("score", Value::Int(None)), "ab"),
            (q().is_in("score", [1, 2, 7]), "ab"),
            (q().is_in("score", [] as [i64; 0]), ""),
            (q().eq("note", "Ä first"), "a"),
            (q().eq("note", "ä first"), ""),
            (q().ne("note", "Ä first"), "b"),
            (q().lt("note", "ä"), "a"),
            (q().gt("note", "ä"), "b"),
            (q().is_in("note", ["ä second", "A first"]), "b"),
            (q().eq("urgent", true), "b"),
            (q().lt("urgent", true), "ac"),
            (q().ge("seen_at", now.plus(seconds(1))), "b"),
            (q().is_in("seen_at", [now]), "a"),
            (q().eq("weight", -0.5), "a"),
            (q().gt("weight", -0.25), "b"),
            (q().is_in("weight", [1e300, 0.1]).not_null("raw"), "b"),
            (q().eq("raw", vec![0_u8, 1, 255]), "a"),
            (q().gt("raw", vec![0_u8, 1, 255]), "b"),
            (q().ne("raw", vec![0_u8, 2, 255]), "a"),
            (q().is_in("raw", [vec![0_u8], vec![0, 2, 255]]), "b"),
            (q().is_null("weight"), "c"),
            (q().eq("order_id", Uuid::from_u128(1)), "a"),
            (q().gt("order_id", Uuid::from_u128(1)), "b"),
            (q().is_null("order_id").eq("channel", "email"), "c"),
            (q().eq("id", a.row.id), "a"),
            (q().is_in("id", [a.row.id.as_uuid()]), "a"),
            (q().eq("status", OutboxStatus::Pending).gt("score", 1), "b"),
            (q().eq("status", "DEAD"), ""),
            (q().eq("shop", "").eq("created_at", now), "abc"),
            (q().eq("dedupe_key", a.row.dedupe_key.as_str()), "a"),
        ] {
            assert_eq!(shop.names(query.clone()).await.concat(), expected, "{query:?}");
            assert_eq!(shop.rows().count_by(&query).await.unwrap(), u64::try_from(expected.len()).unwrap());
            assert_eq!(shop.rows().exists_by(&query).await.unwrap(), !expected.is_empty());
        }
        assert_eq!(shop.rows().count().await.unwrap(), 3);
    }

    /// Contract C1.4 for every text: letter case, accents and trailing blanks count everywhere.
    async fn text_compares_and_sorts_byte_by_byte(world: World) {
        let shop = Shop::on(&world).await;
        let notes = ["", " ", "A", "B", "Z", "a", "a ", "a b", "b", "É", "é", "ﬀ", "😀"];
        for note in notes.iter().rev() {
            shop.made(|mail| mail.note = Some((*note).to_owned())).await;
        }
        let found = shop.rows().find_by(&Query::new().order_by("note", Direction::Ascending)).await.unwrap();
        assert_eq!(found.iter().map(|mail| mail.note.as_deref().unwrap()).collect::<Vec<_>>(), notes);
        for (at, note) in notes.iter().enumerate() {
            let count = async |query: Query| usize::try_from(shop.rows().count_by(&query).await.unwrap()).unwrap();
            assert_eq!(count(Query::new().eq("note", *note)).await, 1, "{note:?}");
            assert_eq!(count(Query::new().ne("note", *note)).await, notes.len() - 1, "{note:?}");
            assert_eq!(count(Query::new().is_in("note", [*note])).await, 1, "{note:?}");
            assert_eq!(count(Query::new().lt("note", *note)).await, at, "{note:?}");
            assert_eq!(count(Query::new().le("note", *note)).await, at + 1, "{note:?}");
            assert_eq!(count(Query::new().gt("note", *note)).await, notes.len() - at - 1, "{note:?}");
            assert_eq!(count(Query::new().ge("note", *note)).await, notes.len() - at, "{note:?}");
        }
        // Long texts are compared whole, though sorted by their beginning.
        let long = "x".repeat(5_000);
        shop.made(|mail| mail.note = Some(format!("{long}1"))).await;
        shop.made(|mail| mail.note = Some(format!("{long}2"))).await;
        assert_eq!(shop.rows().count_by(&Query::new().eq("note", format!("{long}2"))).await.unwrap(), 1);
        assert_eq!(shop.rows().count_by(&Query::new().lt("note", format!("{long}2")).gt("note", "x")).await.unwrap(), 1);
    }

    /// Contract C7: query by example; a null of the probe's asks for null.
    async fn a_query_by_example_compares_the_named_columns_alone(world: World) {
        let shop = Shop::on(&world).await;
        let [a, b, c] = three(&shop).await;
        let mut probe = b.clone();
        probe.row.subject = Some("not compared".to_owned());
        for (probe, columns, expected) in [
            (&probe, vec!["order_id", "channel"], "b"),
            (&probe, vec!["channel", "shop", "status", "max_attempts", "created_at"], "abc"),
            (&c, vec!["score", "note", "order_id", "seen_at"], "c"),
            (&a, vec!["id"], "a"),
            (&a, vec!["urgent", "cc_addresses"], "ac"),
        ] {
            let query = by_name(Query::new().matching(probe, &columns));
            assert_eq!(shop.names(query).await.concat(), expected, "{columns:?}");
        }
        for columns in [vec![], vec!["order"], vec!["tenant_id"]] {
            let refused = shop.rows().find_by(&Query::new().matching(&probe, &columns)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{columns:?}");
        }
    }

    /// Whatever does not fit is refused by name, before any SQL.
    async fn what_does_not_fit_the_entity_is_refused_by_name(world: World) {
        let shop = Shop::on(&world).await;
        for (query, told) in [
            (Query::new().eq("chanel", "email"), vec!["\"chanel\"", "channel", "shop", "order_id"]),
            (Query::new().eq("created_date", world.now()), vec!["\"created_date\"", "created_at"]),
            (Query::new().eq("due_at", world.now()), vec!["\"due_at\""]),
            (Query::new().eq("\"id\" = \"id\" OR 1", 1), vec!["no column"]),
            (Query::new().order_by("tenant_id", Direction::Ascending), vec!["\"tenant_id\"", "shop"]),
            (Query::new().eq("score", "1"), vec!["\"score\"", "Int"]),
            (Query::new().is_in("order_id", ["x"]), vec!["\"order_id\"", "Uuid"]),
            (Query::new().eq("id", "x"), vec!["\"id\"", "Uuid"]),
            (Query::new().eq("score", Value::Text(None)), vec!["\"score\"", "Int"]),
            (Query::new().eq("score", Value::Unreadable("why".to_owned())), vec!["\"score\"", "Int"]),
            (Query::new().lt("score", Value::Int(None)), vec!["\"score\"", "null"]),
            (Query::new().eq("weight", f64::NAN), vec!["\"weight\""]),
            (Query::new().lt("weight", f64::INFINITY), vec!["\"weight\""]),
            (Query::new().is_in("score", [Some(1), None]), vec!["\"score\"", "null"]),
            (Query::new().eq("note", "a\0b"), vec!["\"note\"", "NUL"]),
            (Query::new().eq("status", "sent"), vec!["\"sent\"", "SENT", "SUPPRESSED"]),
            (Query::new().limit(0), vec!["limit"]),
            (Query::new().is_in("score", 0..10_001_i64), vec!["10001", "10000"]),
        ] {
            let rows = shop.rows();
            let refusals = [
                rows.find_by(&query).await.unwrap_err(),
                rows.find_one(&query).await.unwrap_err(),
                rows.count_by(&query).await.unwrap_err(),
                rows.exists_by(&query).await.unwrap_err(),
                rows.page(&query).await.unwrap_err(),
                rows.select(&query, &["id"]).await.unwrap_err(),
                rows.delete_by(&query).await.unwrap_err(),
                rows.delete_batch(&query, 1).await.unwrap_err(),
            ];
            // A delete takes no order at all.
            let said = refusals[0].to_string();
            for refusal in &refusals {
                assert_eq!(refusal.kind(), ErrorKind::Invalid, "{refusal}");
            }
            for word in told {
                assert!(said.contains(word), "{said:?} does not say {word:?}");
            }
        }
        let most = Query::new().is_in("score", 0..10_000_i64).is_in("note", [] as [&str; 0]);
        assert_eq!(shop.rows().count_by(&most).await.unwrap(), 0);
        let most = Query::new().is_in("note", (0..10_000).map(|n| n.to_string()));
        assert_eq!(shop.rows().find_by(&most.limit(5)).await.unwrap().len(), 0);
    }

    /// Contract C7: none, one, or an error of its own.
    async fn find_one_finds_one_or_none_and_refuses_more(world: World) {
        let shop = Shop::on(&world).await;
        let [a, ..] = three(&shop).await;
        let rows = shop.rows();
        assert_eq!(rows.find_one(&Query::new().eq("score", 7)).await.unwrap(), None);
        assert_eq!(rows.find_one(&Query::new().eq("score", 1)).await.unwrap().unwrap().row.id, a.row.id);
        assert_eq!(rows.find_one(&Query::new()).await.unwrap_err().kind(), ErrorKind::Ambiguous);
        let first = by_name(Query::new()).limit(1);
        assert_eq!(rows.find_one(&first).await.unwrap().unwrap().row.id, a.row.id);
    }

    /// Contract C7: any number of ids; in their order, each once.
    async fn rows_are_found_by_any_number_of_ids(world: World) {
        let shop = Shop::on(&world).await;
        let [a, b, c] = three(&shop).await.map(|mail| mail.row.id);
        let rows = shop.rows();
        assert!(rows.find_all_by_id(&[]).await.unwrap().is_empty());
        let mut ids: Vec<OutboxId> = (0..10_000).map(|_| OutboxId::new(&*world.clock)).collect();
        ids[3] = c;
        ids[700] = a;
        ids[9_999] = b;
        ids.push(a);
        let found: Vec<_> = rows.find_all_by_id(&ids).await.unwrap().iter().map(|mail| mail.row.id).collect();
        assert_eq!(found, [c, a, b]);
        assert!(rows.exists_by_id(a).await.unwrap());
        assert!(!rows.exists_by_id(ids[0]).await.unwrap());
        assert!(!shop.repository.scoped(&tenant("other")).exists_by_id(a).await.unwrap());
        assert!(shop.repository.scoped(&tenant("other")).find_all_by_id(&ids).await.unwrap().is_empty());
    }

    /// Contract C7: a projection reads these columns, and nothing else.
    async fn a_projection_reads_its_columns_alone(world: World) {
        let shop = Shop::on(&world).await;
        let [a, ..] = three(&shop).await;
        let rows = shop.rows();
        // None of them can be read as a row.
        world.sql("UPDATE order_mail SET cc_addresses = '{}'").await;
        assert_eq!(rows.find_by(&Query::new()).await.unwrap_err().kind(), ErrorKind::Decode);
        let query = by_name(Query::new()).limit(2);
        let columns = ["recipient", "id", "score", "status", "created_at", "shop", "urgent", "score"];
        let found = rows.select(&query, &columns).await.unwrap();
        let (now, pending, root) = (Value::from(world.now()), Value::from("PENDING"), Value::from(""));
        let id = Value::from(a.row.id);
        assert_eq!(
            found[0],
            ["a".into(), id, 1_i64.into(), pending, now, root, false.into(), 1_i64.into()] as [Value; 8]
        );
        assert_eq!(found.len(), 2);
        for columns in [vec![], vec!["no_such"], vec!["id", "*"]] {
            assert_eq!(rows.select(&query, &columns).await.unwrap_err().kind(), ErrorKind::Invalid, "{columns:?}");
        }
    }

    /// Contract C6.3: root's look-up is among root's rows; the one over all tenants has its own name.
    async fn a_key_is_looked_up_in_its_tenant(world: World) {
        let shop = Shop::on(&world).await;
        let mut mails = ["", "one", "two"].map(|name| shop.draft(name));
        for mail in &mut mails {
            mail.row.dedupe_key = "same".to_owned();
        }
        shop.save(&mails).await;
        let [root, one, two] = mails.map(|mail| mail.row.id);
        let id = |mail: Option<OrderMail>| mail.map(|mail| mail.row.id);
        assert_eq!(id(shop.rows().find_by_dedupe_key("same").await.unwrap()), Some(root));
        let scoped = async |name: &str| shop.repository.scoped(&tenant(name)).find_by_dedupe_key("same").await.unwrap();
        assert_eq!(id(scoped("one").await), Some(one));
        assert_eq!(id(scoped("two").await), Some(two));
        assert_eq!(id(scoped("three").await), None);
        let all: Vec<_> =
            shop.rows().find_all_by_dedupe_key("same").await.unwrap().iter().map(|mail| mail.row.id).collect();
        assert_eq!(all.len(), 3);
        assert!([root, one, two].iter().all(|id| all.contains(id)));
        assert_eq!(id(shop.rows().find_by_dedupe_key("Same").await.unwrap()), None);
        assert_eq!(shop.rows().find_by_dedupe_key("a\0").await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
