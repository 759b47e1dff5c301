// Runs in a throw-away folder that has Esper 8: match_recognize over facts in memory, and how long it takes.
//
//     java -cp 'lib/*:.' PeerSequences QUERY FACTS.csv ROUNDS
//
// Place:   started by peers_sequences.py; knows nothing of dotr. One line of JSON on standard output.
// Method:  facts are lines `kind,user,price,millisecond`, events are of a class of their own, matches come to a
//          subscriber, which counts them: what Esper's chapter on performance advises. Each round has a
//          runtime and a deployment of its own. Processor time is that of the whole Java machine, its compiler
//          and collector too.

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.common.client.EventSender;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public final class PeerSequences {
  public static final class Row {
    private final String kind;
    private final String user;
    private final int price;
    private final long stamp;

    Row(String kind, String user, int price, long stamp) {
      this.kind = kind;
      this.user = user;
      this.price = price;
      this.stamp = stamp;
    }

    public String getKind() {
      return kind;
    }

    public String getUser() {
      return user;
    }

    public int getPrice() {
      return price;
    }

    public long getStamp() {
      return stamp;
    }
  }

  public static final class Matches {
    long count;

    public void update(String user, Long n, Long began) {
      count++;
    }
  }

  static String statement(String query) {
    String brute = "measures S.user as user, count(F.stamp) as n, F[0].stamp as began pattern (F{5,} S) "
        + "define F as F.kind = 'Failure', S as S.kind = 'Success'";
    String shape = "measures A.user as user, cast(last(D.price), long) as n, A.stamp as began "
        + "pattern (A D+ U U) define D as D.price < prev(D.price, 1), U as U.price > prev(U.price, 1)";
    return "@name('rule') select user, n, began from Row match_recognize (partition by user "
        + (query.equals("brute force") ? brute : shape) + ")";
  }

  static long processorTime() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  public static void main(String[] given) throws Exception {
    List<Row> rows = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(given[1]))) {
      String[] part = line.split(",");
      rows.add(new Row(part[0], part[1].intern(), Integer.parseInt(part[2]), Long.parseLong(part[3])));
    }
    Configuration configuration = new Configuration();
    configuration.getCommon().addEventType("Row", Row.class);
    configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    configuration.getCompiler().getByteCode().setAllowSubscriber(true);
    EPCompiled compiled = EPCompilerProvider.getCompiler()
        .compile(statement(given[0]), new CompilerArguments(configuration));
    StringBuilder seconds = new StringBuilder();
    long count = 0;
    for (int round = 0; round < Integer.parseInt(given[2]); round++) {
      EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
      runtime.initialize();
      EPStatement statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
      Matches matches = new Matches();
      statement.setSubscriber(matches);
      EventSender sender = runtime.getEventService().getEventSender("Row");
      System.gc();
      long start = processorTime();
      for (Row row : rows) {
        sender.sendEvent(row);
      }
      seconds.append(round == 0 ? "" : ", ").append((processorTime() - start) / 1e9);
      count = matches.count;
    }
    System.out.println("{\"cpu_s\": [" + seconds + "], \"matches\": " + count + "}");
  }
}
